"""Words of scripts without spaces by a dictionary, instead of pairs of characters.

A segmenter splits a stretch of one script in time linear in its length, and gives the same words for the same text whatever
stands around it: nothing is guessed from statistics, so that what the dictionary lacks falls into single characters, which
passages hold as well.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from nlp_retrieval.errors import DependencyError, install

__all__ = ["Segmenter", "segmenter_fingerprint", "segmenting"]

Segmenter = Literal["jieba"]

_PACKAGES = {"jieba": "rjieba"}


def segmenter_fingerprint(name: Segmenter) -> dict[str, str]:
    """Return what the words of a segmenter depend on: the package, whose dictionary is built into it, and its version.

    Raises:
        DependencyError: the package is not installed.
    """
    try:
        return {"name": name, "package": _PACKAGES[name], "version": version(_PACKAGES[name])}
    except PackageNotFoundError:
        raise _missing(name) from None


def segmenting(name: Segmenter) -> Callable[[str], list[str]]:
    """Return what splits Chinese into words, with the words within long ones.

    Raises:
        DependencyError: the package is not installed.
    """
    try:
        from rjieba import Jieba
    except ImportError:
        raise _missing(name) from None
    jieba = Jieba()  # not the one of the module, to which anybody may add words

    def split(text: str) -> list[str]:
        words: list[str] = jieba.cut_for_search(text, False)
        return words

    return split


def _missing(name: Segmenter) -> DependencyError:
    return DependencyError(f"segmenter={name!r} needs {_PACKAGES[name]}: {install('chinese')}")
