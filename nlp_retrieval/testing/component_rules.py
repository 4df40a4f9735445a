"""Rules of every component: a quick constructor, visible settings, and a config that builds it again."""

from __future__ import annotations

import builtins
import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import ClassVar, TypeVar

import pytest

from nlp_retrieval.core.components.component import Component, canonical_json, parameters_of
from nlp_retrieval.core.components.registry import build, component_class, describe_parameters
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.testing.verdict import broken, others_of, shown

# Possibly slow actions of a constructor: opening files, importing modules, starting programs, opening connections.
#
# Imports count where the import statement runs, whether or not the module is already loaded, so that the result does not
# depend on what ran before. Files read by an import itself do not count again.

_SLOW_EVENTS = {"open": "opened", "subprocess.Popen": "started", "socket.connect": "connected to", "os.scandir": "listed"}
_LIGHT = frozenset({"nlp_retrieval", "numpy", "pydantic", "pydantic_core", "annotated_types", "typing_extensions"})
"""Modules besides the standard library that are loaded before any component exists."""

_watched: dict[int, list[str]] = {}
_importing: set[int] = set()
_hooked = Lock()
_has_hook = False

MadeT = TypeVar("MadeT")


def watched(make: Callable[[], MadeT], own_packages: frozenset[str] = frozenset()) -> tuple[MadeT, list[str]]:
    """Call ``make``, and return its result and its possibly slow actions.

    Args:
        make: calls constructors.
        own_packages: top-level packages that may be imported: those of the component itself.
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
        component = make()
    finally:
        builtins.__import__, importlib.import_module = import_, import_module
        del _watched[thread]
    return component, done


def _add_hook() -> None:
    """Audit hooks cannot be removed, so there is one, and it does nothing while nothing is watched."""
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


class ComponentRules:
    """Rules of every component; the classes for the kinds of components extend it.

    A subclass defines the component to check. It overrides no test: a rule that a component cannot keep yet is overridden with
    ``@pytest.mark.xfail(reason=...)``, so that it is reported.
    """

    component: ClassVar[type[Component]]
    """The class to check."""

    tolerance: ClassVar[float] = 0.0
    """Tolerance for scores (for encoders, vectors) that should be equal: relative above 1, absolute below. The order of
    results may differ only where their scores are that close. Exactly equal by default; a neural model needs about 1e-5."""

    folder: Path
    """An empty folder for this class, created before :meth:`prepare`."""

    kept: ClassVar[dict[str, object]]
    """Slow objects shared by the tests of this class."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def prepared(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        """Create the folder, and let the author fill it; after the last test, release shared objects and their open files."""
        own = request.cls
        own.folder = tmp_path_factory.mktemp(own.__name__)
        own.kept = {}
        own().prepare()
        yield
        own.kept.clear()

    def prepare(self) -> None:
        """Write the files that :meth:`make` needs into ``self.folder``; called once per class. Does nothing by default."""

    def make(self) -> Component:
        """Return a new component, with the same settings at every call; only constructors are called."""
        return self.component()

    def other_values(self) -> Mapping[str, object]:
        """Return another valid value by parameter, if the type hint does not suggest one: text, paths, components."""
        return {}

    def test_a_constructor_opens_no_file_and_imports_nothing_heavy(self) -> None:
        own = frozenset(cls.__module__.partition(".")[0] for cls in (*self.component.__mro__, type(self)))
        component, slow = watched(self.make, own)
        if slow:
            broken(
                "a constructor does nothing slow: models, files and heavy modules open at first use",
                component,
                "; ".join(slow[:5]),
            )

    def test_the_component_is_of_the_class_that_is_checked(self) -> None:
        component = self.make()
        if type(component) is not self.component:
            broken(
                "make() returns a component of the class named as 'component'",
                component,
                f"a {type(component).__name__}, no {self.component.__name__}",
            )

    def test_equal_settings_make_equal_components(self) -> None:
        first, other = self.make(), self.make()
        if first != other or hash(first) != hash(other):
            broken("two components of equal settings are equal", first, f"{first.config} and {other.config}")
        if canonical_json(first.identity) != canonical_json(other.identity):
            broken("components of equal settings have one identity", first, f"{first.identity}, {other.identity}")

    def test_the_config_is_json_and_builds_an_equal_component(self) -> None:
        component = self.make()
        rule = "the config holds plain JSON values, and the registry builds an equal component from it"
        try:
            config = json.loads(json.dumps(component.config, allow_nan=False))
        except (TypeError, ValueError) as error:
            broken(rule, component, f"config {shown(component.config)}: {error}")
        if config != component.config:
            broken(rule, component, f"config {shown(component.config)} comes back from JSON as {shown(config)}")
        try:
            rebuilt = build(component.kind, config)
        except ConfigurationError as error:
            broken(
                rule,
                component,
                f"{error}. An unknown name means that the component, or one inside it, is not an installed entry point of the "
                f"group nlp_retrieval.{component.kind}",
            )
        if rebuilt != component:
            broken(rule, component, f"{rebuilt!r} with the config {shown(rebuilt.config)}")

    def test_the_registry_name_stands_for_this_class(self) -> None:
        component = self.make()
        try:
            registered = component_class(component.kind, component.name)
        except ConfigurationError as error:
            broken(f"a component is registered as an entry point of nlp_retrieval.{component.kind}", component, str(error))
        if registered is not self.component:
            broken(
                "the registry name stands for this class", component, f"{component.name!r} stands for {registered.__qualname__}"
            )

    def test_every_setting_is_shown_and_told_apart(self) -> None:
        component = self.make()
        for parameter, other in others_of(component, self.other_values()):
            if other is None:
                continue
            if f"{parameter}=" not in repr(other) and f"{parameter}=" not in repr(component):
                broken("the repr shows every setting that is not the default", other, f"no {parameter}= in it")
            if other == component or other.config == component.config:
                broken("components of different settings differ", component, f"{other!r} equals it, but for {parameter!r}")
            if len({repr(component), repr(other)}) == 1:
                broken(
                    "the repr shows every setting that is not the default", component, f"another {parameter!r}, the same repr"
                )

    def test_every_parameter_is_described(self) -> None:
        component = self.make()
        missing = [name for name, _, text, _ in describe_parameters(type(component)) if not text]
        if missing:
            broken(
                "the Args section of the class docstring describes every parameter: it is the help", component, f"not {missing}"
            )
        if not (type(component).__doc__ or "").strip():
            broken("a component has a docstring: it is the help", component, "none")

    def test_search_only_names_parameters(self) -> None:
        component = self.make()
        unknown = sorted(component.search_only - parameters_of(type(component)).keys())
        if unknown:
            broken("search_only names parameters of the constructor", component, f"no parameter is called {unknown}")

    def test_no_rule_is_left_out(self) -> None:
        """An override hides a rule as silently as a skipped test does; an expected failure is reported."""
        rules = {
            name: rule
            for cls in reversed(type(self).__mro__)
            if cls.__module__.startswith(__package__ + ".")
            for name, rule in vars(cls).items()
            if name.startswith("test_")
        }
        for name, rule in rules.items():
            mine = getattr(type(self), name)
            marks = [mark for mark in getattr(mine, "pytestmark", []) if mark.name == "xfail" and mark.kwargs.get("reason")]
            if mine is not rule and not marks:
                broken(
                    "no rule of the kit is overridden, but with pytest.mark.xfail(reason=...)",
                    type(self).__name__,
                    f"{name} is",
                )
