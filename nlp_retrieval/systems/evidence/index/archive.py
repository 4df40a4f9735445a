"""Stored sources of a project: their texts, versions and passages, whether or not an index holds them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from nlp_retrieval.core import BaseSearcher
from nlp_retrieval.errors import InputError, QueryError
from nlp_retrieval.systems.evidence.index.dates import moment_of
from nlp_retrieval.systems.evidence.index.metadata import is_held
from nlp_retrieval.systems.evidence.index.records import EvidencePassage, SourceVersion
from nlp_retrieval.systems.evidence.index.searchable import SearchablePassages
from nlp_retrieval.systems.evidence.index.store import EvidenceStore, StoredVersion
from nlp_retrieval.systems.evidence.index.urls import anchor_of, canonical_url

__all__ = ["GRAPH_FOLDER", "SourceArchive", "passage_of"]

GRAPH_FOLDER = "10_graph"
"""Folder of a project's sources and their index."""


class SourceArchive:
    """The stored sources of one project.

    Args:
        project_path: folder of the project.
        searcher: finds passages.
        index_name: folder of the searcher's index, below ``10_graph``.
    """

    def __init__(self, project_path: str | Path, searcher: BaseSearcher, index_name: str) -> None:
        self.project_path = Path(project_path).expanduser().absolute()
        if not index_name or index_name.startswith(".") or Path(index_name).name != index_name:
            raise InputError(f"index_name={index_name!r} is not the name of a folder")
        self.index_path = self.project_path / GRAPH_FOLDER / index_name
        self._store = EvidenceStore(self.project_path / GRAPH_FOLDER / "evidence.sqlite3")
        self._passages = SearchablePassages(self.index_path, searcher)

    @property
    def engines(self) -> list[str]:
        """Return the labels of the searcher's retrievers."""
        return self._passages.engines

    def was_deleted(self, url: str) -> bool:
        """Return whether there was a source under this URL that was deleted."""
        return self._store.was_deleted(canonical_url(url)) or self._store.was_deleted(canonical_url(url) + anchor_of(url))

    @property
    def has_deleted(self) -> bool:
        """Return whether there is a URL whose source was deleted."""
        return self._store.any_deleted()

    def source(self, url: str, date: str | None = None) -> SourceVersion | None:
        """Return the source under a URL.

        Args:
            url: in any of its forms.
            date: of a citation, ISO 8601: return the version that was the newest then; by default the newest of all.

        Returns:
            The version; None if there is none, or none had been fetched by that date.
        """
        return next(reversed(self.versions(url, date)), None)

    def versions(self, url: str, until: str | None = None) -> list[SourceVersion]:
        """Return all versions of the source under a URL, oldest first.

        Args:
            url: in any of its forms.
            until: omit those that were fetched after this date, ISO 8601.
        """
        limit = None if until is None else moment_of(until, last=True)
        stored = self._store.versions(self._place(url))
        return self._described([version for version in stored if limit is None or version.moment <= limit])

    def sources(self) -> list[SourceVersion]:
        """Return the newest version of every URL, in the order of adding."""
        return self._described([version for version in self._store.all_versions() if version.newest])

    def urls(self, key: str) -> list[str]:
        """Return the canonical forms of all URLs under which a text was added, even if it was replaced there later.

        Args:
            key: of a result or a source, or the whole SHA-256.

        Returns:
            The URLs in the order of adding; empty if there is no such text.
        """
        sha256 = self._store.sha256_of(key)
        text = None if sha256 is None else self._store.texts([sha256]).get(sha256)
        return [] if text is None else list(text.urls)

    def text(self, key: str) -> str:
        """Return a stored text.

        Args:
            key: of a result or a source, or the whole SHA-256.

        Raises:
            QueryError: there is no such text.
            IndexDamagedError: it does not match its SHA-256.
        """
        content = self._store.content(self._sha256(key))
        if content is None:
            raise _unknown(key)
        return content

    def passages(self, key: str) -> list[EvidencePassage]:
        """Return all passages of a stored text, in order.

        Args:
            key: of a result or a source, or the whole SHA-256.

        Raises:
            QueryError: there is no such text.
        """
        sha256 = self._sha256(key)
        content, text = self.text(sha256), self._store.texts([sha256]).get(sha256)
        if text is None:
            raise _unknown(key)
        spans = self._store.spans(sha256).get(sha256, [])
        return [passage_of(text.shown, content, start, end) for start, end in spans]

    def close(self) -> None:
        """Close the file of the sources; it is reopened when needed."""
        self._store.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _described(self, versions: list[StoredVersion]) -> list[SourceVersion]:
        held, texts = self._passages.held(), self._store.texts(version.sha256 for version in versions)
        return [
            SourceVersion(
                key=version.key,
                url=version.url,
                title=version.title,
                quality=version.quality,
                fetch_date=version.fetch_date,
                passage_count=version.passage_count,
                searchable=version.sha256 in texts and is_held(texts[version.sha256], held),
            )
            for version in versions
        ]

    def doubtful(self, key: str) -> list[tuple[int, int]]:
        """Return the spans of a stored text that readers of its page may not see.

        Args:
            key: of a result or a source, or the whole SHA-256.
        """
        return self._store.doubtful(self._sha256(key))

    def _place(self, url: str) -> str:
        """Return the URL under which the text of this URL is stored."""
        return self._store.at_place(canonical_url(url), anchor_of(url))

    def _sha256(self, key: str) -> str:
        sha256 = self._store.sha256_of(key) if isinstance(key, str) else None
        if sha256 is None:
            raise _unknown(key)
        return sha256


def passage_of(
    source: StoredVersion, content: str, start: int, end: int, score: float = 0.0, signals: Mapping[str, float] | None = None
) -> EvidencePassage:
    """Return a passage of a stored text in the form that users see.

    Args:
        source: the version that it is shown under.
        content: the whole text.
        start: of the passage in it, in characters.
        end: of the passage in it.
        score: of a search.
        signals: that the score comes from.
    """
    return EvidencePassage(
        content=content[start:end],
        url=source.url,
        title=source.title,
        quality=source.quality,
        fetch_date=source.fetch_date,
        score=score,
        key=source.key,
        start=start,
        end=end,
        signals=dict(signals or {}),
    )


def _unknown(key: object) -> QueryError:
    return QueryError(f"no text of this project has the key {str(key)[:80]!r}; sources() lists them")
