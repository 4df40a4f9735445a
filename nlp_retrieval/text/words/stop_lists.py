"""The lists of stop words that bm25s holds ("en" is Lucene's), without the rest of bm25s.

Its package starts numba when it is imported, half a second, and jax, which takes most of the memory of a GPU and fails where
there is none left. The lists are a file of constants, so that file alone is run.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType

__all__ = ["STOP_LISTS", "stop_words"]

_MODULE = "bm25s.stopwords"
_CONSTANTS = {
    "en": "EN",
    "en_plus": "EN_PLUS",
    "da": "DANISH",
    "de": "GERMAN",
    "nl": "DUTCH",
    "fr": "FRENCH",
    "es": "SPANISH",
    "pt": "PORTUGUESE",
    "it": "ITALIAN",
    "ru": "RUSSIAN",
    "sv": "SWEDISH",
    "no": "NORWEGIAN",
    "zh": "CHINESE",
    "tr": "TURKISH",
    "ko": "KOREAN",
}

STOP_LISTS = tuple(_CONSTANTS)
"""Names of the lists."""


def stop_words(name: str) -> tuple[str, ...]:
    """Return a list of stop words.

    Args:
        name: one of :data:`STOP_LISTS`.
    """
    return tuple(getattr(_constants(), f"STOPWORDS_{_CONSTANTS[name]}"))


@cache
def _constants() -> ModuleType:
    """The module by itself; imported as usual where its file is not found."""
    package = find_spec("bm25s")
    alone = package and PathFinder.find_spec(_MODULE, package.submodule_search_locations)
    if alone is None or alone.loader is None:
        return import_module(_MODULE)
    module = module_from_spec(alone)
    alone.loader.exec_module(module)
    return module
