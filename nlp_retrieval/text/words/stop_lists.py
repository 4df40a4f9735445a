"""The lists of stop words that bm25s holds ("en" is Lucene's), without the rest of bm25s.

Its package starts numba when it is imported, half a second, and jax, which takes most of the memory of a GPU and fails where
there is none left. The lists are a file of constants, so that file alone is run.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
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


def _constants() -> ModuleType:
    """The module, from its file; imported as usual where an installation has none."""
    package = importlib.util.find_spec("bm25s")
    places = [Path(place) / "stopwords.py" for place in (package.submodule_search_locations or [])] if package else []
    for place in filter(Path.is_file, places):
        spec = importlib.util.spec_from_file_location(_MODULE, place)
        if spec is not None and spec.loader is not None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return importlib.import_module(_MODULE)
