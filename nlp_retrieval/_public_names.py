"""Public names that are imported when they are first used, so that importing a package is quick and needs no extra.

Each package declares its names in ``__init__.pyi``, beside its ``__init__.py``: type checkers read it, and so does this module.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

ROOMS = (
    *("agents", "benchmarks", "cli", "core", "encoders", "evaluation", "gate", "judging", "lm", "loaders", "processors"),
    *("documents", "reports"),
    *("rerankers", "retrievers", "service", "text"),
)
"""The packages of the library that export names to plug-ins."""


@cache
def modules_of(package: str) -> dict[str, str]:
    """Return the module that defines each public name of a package."""
    source = import_module(package).__file__ or ""
    lines = Path(source).with_suffix(".pyi").read_text("utf-8").splitlines()
    declared = (line.split() for line in lines if line.startswith("from "))
    return {name: module for _, module, _, name, *_ in declared}


def public_names(package: str, namespace: dict[str, object]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package.

    Args:
        package: its name.
        namespace: its globals; a name that was used once is kept there.
    """

    def get(name: str) -> object:
        if name == "__all__":
            return sorted(modules_of(package))
        if name.startswith("__") or name not in modules_of(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(modules_of(package)[name]), name)
        namespace[name] = value
        return value

    def names() -> list[str]:
        return sorted(modules_of(package))

    return get, names
