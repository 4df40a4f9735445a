"""Filters by URL: a text is found by each of its URLs, though the index that is searched holds only the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nlp_retrieval.core import Where, add_note
from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.index.urls import anchor_of, canonical_url

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
            for operator in ("eq", "in"):
                wanted = conditions.get(operator)
                urls = [wanted] if isinstance(wanted, str) else wanted
                if isinstance(urls, Sequence | set | frozenset) and all(isinstance(url, str) for url in urls):
                    del conditions[operator]
                    found = texts_at(_canonical(urls))
                    sources.append({"source": {"in": found}})
                    if not found:
                        add_note(f"where: no source has the URL {', '.join(map(repr, list(urls)[:3]))}", stacklevel=4)
            replaced |= {key: conditions} if conditions else {}
        else:
            replaced[key] = value
    return replaced | {"and": [*replaced.get("and", []), *sources]} if sources else replaced


def _canonical(urls: Iterable[str]) -> list[str]:
    found: list[str] = []
    for url in urls:
        try:
            found += dict.fromkeys((canonical_url(url), canonical_url(url) + anchor_of(url)))
        except InputError:  # what is not a URL is that of no source
            continue
    return found
