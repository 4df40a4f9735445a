"""What a constructor does that may be slow: files that it opens, modules that it imports, programs and connections.

Imports count where the import statement runs, whether or not the module is loaded already, so that the verdict does not
depend on what ran before. What an import itself reads does not count a second time.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TypeVar

from nlp_retrieval.core.forks import Lock

_SLOW_EVENTS = {"open": "opened", "subprocess.Popen": "started", "socket.connect": "connected to", "os.scandir": "listed"}
_LIGHT = frozenset({"nlp_retrieval", "numpy", "pydantic", "pydantic_core", "annotated_types", "typing_extensions"})
"""Beside the standard library: what is loaded before any component exists."""

_watched: dict[int, list[str]] = {}
_importing: set[int] = set()
_hooked = Lock()
_has_hook = False

MadeT = TypeVar("MadeT")


def watched(make: Callable[[], MadeT], own_packages: frozenset[str] = frozenset()) -> tuple[MadeT, list[str]]:
    """Call ``make``, and return what it made and what it did that may be slow.

    Args:
        make: calls constructors.
        own_packages: top-level packages that may be imported: where the component itself comes from.
    """
    _add_hook()
    thread, done = threading.get_ident(), []
    import_, import_module = builtins.__import__, importlib.import_module

    def noted(name: str) -> bool:
        top = name.partition(".")[0]
        if thread == threading.get_ident() and thread not in _importing:
            if top not in _LIGHT | own_packages | sys.stdlib_module_names:
                done.append(f"imported {name}")
            _importing.add(thread)
            return True
        return False

    def importing(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 -- the names of the function that this one stands for
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        absolute = name if level == 0 else str((globals or {}).get("__name__", name))
        outermost = noted(absolute)
        try:
            return import_(name, globals, locals, fromlist, level)
        finally:
            if outermost:
                _importing.discard(thread)

    def importing_module(name: str, package: str | None = None) -> ModuleType:
        outermost = noted(f"{package}{name}" if name.startswith(".") else name)
        try:
            return import_module(name, package)
        finally:
            if outermost:
                _importing.discard(thread)

    builtins.__import__, importlib.import_module = importing, importing_module
    _watched[thread] = done
    try:
        made = make()
    finally:
        builtins.__import__, importlib.import_module = import_, import_module
        del _watched[thread]
    return made, done


def _add_hook() -> None:
    """Audit hooks cannot be removed, so there is one, and it looks away while nothing is watched."""
    global _has_hook  # noqa: PLW0603
    with _hooked:
        if not _has_hook:
            sys.addaudithook(_noted)
            _has_hook = True


def _noted(event: str, arguments: tuple[object, ...]) -> None:
    if not _watched or event not in _SLOW_EVENTS:
        return
    thread = threading.get_ident()
    if thread in _watched and thread not in _importing:
        _watched[thread].append(f"{_SLOW_EVENTS[event]} {arguments[0]!r}")
