"""Filters by URL: a text is found by each of its URLs, though the index that is searched holds only the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nlp_retrieval.core.filters import Where
from nlp_retrieval.errors import InputError
from nlp_retrieval.evidence.index.urls import anchor_of, canonical_url

__all__ = ["by_source"]

_KEYS = ("url", "metadata.url")


def by_source(where: Where, texts_at: Callable[[Sequence[str]], list[str]]) -> Where:
    """Return a filter that asks for the texts under the URLs that a filter names, instead of for the URLs.

    Args:
        where: a filter that was checked. Of conditions on ``url``, ``eq`` and ``in`` are replaced; the others stay.
        texts_at: the SHA-256 of the newest texts under some URLs in canonical form.
    """
    replaced: dict[str, Any] = {}
    sources: list[Where] = []
    for key, value in where.items():
        if key in ("and", "or"):
            replaced[key] = [by_source(part, texts_at) for part in value]
        elif key == "not":
            replaced[key] = by_source(value, texts_at)
        elif key in _KEYS:
            conditions = dict(value) if isinstance(value, Mapping) else {"eq": value}
            named = [conditions.pop(operator) for operator in ("eq", "in") if operator in conditions]
            urls = [[one] if isinstance(one, str) else one for one in named]
            sources += [{"source": {"in": texts_at(_canonical(some))}} for some in urls]
            replaced |= {key: conditions} if conditions else {}
        else:
            replaced[key] = value
    return replaced | {"and": [*replaced.get("and", []), *sources]} if sources else replaced


def _canonical(urls: object) -> list[str]:
    found = []
    for url in urls if isinstance(urls, Sequence | set | frozenset) else ():
        try:
            found += dict.fromkeys((canonical_url(url), canonical_url(url) + anchor_of(url)))
        except InputError:  # what is not a URL is that of no source
            continue
    return found
