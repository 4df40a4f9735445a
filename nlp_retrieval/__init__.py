"""Compose, search with and honestly compare retrieval pipelines.

The public names are imported when they are first used, so that ``import nlp_retrieval`` is quick and needs no extra. They are
declared in ``__init__.pyi``, beside this file, which type checkers and this module read.
"""

from functools import cache
from importlib import import_module

from nlp_retrieval._version import __version__ as __version__


@cache
def _modules() -> dict[str, str]:
    """The module of each public name."""
    from pkgutil import get_data

    lines = (get_data(__name__, "__init__.pyi") or b"").decode().splitlines()
    declared = (line.split() for line in lines if line.startswith("from "))
    return {name: module for _, module, _, name, *_ in declared}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(_modules())
    if name.startswith("__") or name not in _modules():
        raise AttributeError(f"module 'nlp_retrieval' has no attribute {name!r}")
    value: object = getattr(import_module(_modules()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_modules())
