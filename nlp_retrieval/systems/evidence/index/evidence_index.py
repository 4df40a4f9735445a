"""Index of sources: it takes sources and returns passages, each with the URL, grade and date of its source.

An added source is on the disk when ``add_document`` returns, and is found after ``build_index``. Everything in a result comes
from the stored sources; the searched index is derived from them and only selects the passages.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Self, TypedDict

import orjson
from filelock import FileLock, Timeout

from nlp_retrieval import RetrievalResult, Searcher
from nlp_retrieval.core import (
    STOP_WORDS,
    BaseSearcher,
    Where,
    check_k,
    check_queries,
    clear_asides,
    expanded,
    explained_writes,
    join_title,
    parse_filter,
    record_steps,
    write_atomically,
)
from nlp_retrieval.errors import ConfigurationError, IndexLockedError, InputError, QueryError, RetrievalWarning
from nlp_retrieval.systems.evidence.grades import at_least
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage, by_shared_words
from nlp_retrieval.systems.evidence.index.searchable import SearchablePassages, place_of
from nlp_retrieval.systems.evidence.index.store import (
    EvidenceStore,
    SourceDocument,
    SourceVersion,
    StoredText,
    normalized,
    source_of,
)
from nlp_retrieval.systems.evidence.index.urls import canonical_or_empty, canonical_url, registrable_domain

GRAPH_FOLDER = "10_graph"
SOURCES_FILE = "evidence.sqlite3"
"""Folder of a project's sources and their index."""

_WORD = re.compile(r"\w+")
_BUILD_WAIT = 600.0
_METADATA_WAIT = 60.0


_LONGEST_SOURCE = 40_000
"""Longest text that is read whole, in characters; of a longer one, only the passages that a search in it finds are read."""
_PASSAGES_OF_LONG_SOURCE = 60


@dataclass(frozen=True)
class SourceReading:
    """What is read of a source for a claim, the whole text with its title, and passages by where they begin in what is read."""

    text: str
    whole: str
    begins: list[tuple[int, EvidencePassage]]


class IndexStatistics(TypedDict):
    """Figures of an index; what is ``indexed`` is searchable, all else counts replaced and waiting texts, too."""

    index_built: bool
    document_count: int
    indexed_count: int
    source_count: int
    passage_count: int
    indexed_passage_count: int
    unique_domains: int
    indexed_domains: int
    total_queries: int
    zero_result_queries: int
    avg_results_per_query: float
    average_relevance: float


class EvidenceIndex:
    """The sources of one research project, and the passages in them.

    Several processes may add, build and search at once. Reading a project that does not exist creates nothing.

    Args:
        project_path: folder of the project; sources are kept in ``10_graph`` below it.
        searcher: finds passages; by default BM25 and a dense retriever, fused, which needs the extra ``dense``. Open a project
            with the same one: ``build_index`` rebuilds an index of another.
        index_name: folder of the index in ``10_graph``; by default ``index``, or ``colbert_index`` for ``model_name``.
        model_name: hub name or folder of a ColBERT model, such as "colbert-ir/colbertv2.0", in place of a searcher.

    Raises:
        ConfigurationError: there are a searcher and a model, or the searcher is none.

    Examples:
        >>> index = EvidenceIndex("seas", Searcher(["bm25"]))
        >>> index.add_document("Krill live in swarms.", "https://example.org/krill", "Krill", source_quality="A")
        True
        >>> index.build_index()
        >>> passage = index.search("Where do krill live?")[0]
        >>> passage.content, passage.url
        ('Krill live in swarms.', 'https://example.org/krill')
    """

    def __init__(
        self,
        project_path: str | Path,
        searcher: BaseSearcher | None = None,
        index_name: str | None = None,
        *,
        model_name: str | None = None,
    ) -> None:
        name = ("index" if model_name is None else "colbert_index") if index_name is None else index_name
        if not name or name.startswith(".") or Path(name).name != name:
            raise InputError(f"index_name={name!r} is not the name of a folder")
        self.project_path = expanded(project_path).absolute()
        graph = self.project_path / GRAPH_FOLDER
        self.index_path, self.metadata_path = graph / name, graph / "index_metadata.json"
        self._store = EvidenceStore(graph / SOURCES_FILE)
        self._passages = SearchablePassages(self.index_path, _searcher(searcher, model_name))
        self._searched = False

    def add_document(
        self, content: str, url: str, title: str = "", source_quality: str | None = None, fetch_date: str = ""
    ) -> bool:
        """Add a source; it is on the disk when this returns, and found after :meth:`build_index`.

        The same text under another URL makes an alias; another text under the same URL a new version, and the one fetched last
        is searched. A given title and grade stay until others are given. A source without a date is its URL's newest.

        Args:
            content: the text of the page.
            url: of the page; http, https or file, or a DOI.
            title: of the page; cut to 500 characters.
            source_quality: its grade, "A" (best) to "E"; None: the one given before, else by its address.
            fetch_date: when it was fetched, ISO 8601, UTC without an offset; by default now.

        Returns:
            Whether something new can be cited; False if the URL has this text already, whose title, grade and date may change.

        Raises:
            InputError: a value cannot be used.
            IndexStateError: the project cannot be written to or read, or another process has been writing for a minute.
        """
        return self.add_source(source_of(content, url, title, source_quality, fetch_date))

    def add_source(self, source: SourceDocument) -> bool:
        """Add a source that was read from a file, as :meth:`add_document` does."""
        checked = normalized(source)
        added = [self._store.add(replace(checked, url=url)) for url in (checked.url, *source.aliases)]
        self.write_metadata()
        return any(added)

    def delete(self, url: str) -> int:
        """Delete every version of a URL, in any of its forms, and the texts that no other URL has; return their number."""
        count = self._store.delete(canonical_url(url))
        self.write_metadata()  # even if nothing was deleted: the process that deleted it may have been killed before this
        return count

    def named(self, source: str) -> str:
        """Return the URL under which a source is stored, by a URL or the key of a text; a ``QueryError`` if there is none."""
        key = source.strip()
        versions = self._store.versions_of(key)
        urls = [version.canonical for version in versions if version.newest]
        if versions and len(urls) != 1:
            raise QueryError(f"the text {key} is now at {len(urls)} URLs; name the source by its URL")
        canonical = urls[0] if urls else canonical_url(source)
        if not self._store.versions(canonical):
            raise QueryError(f"no text is stored under {source[:200]!r}; sources() lists all")
        return canonical

    def build_index(self) -> None:
        """Bring the searched index up to date with the sources; only changes are written.

        Raises:
            DependencyError: the searcher needs a package or a model that is not installed.
            IndexLockedError: another process has been building for ten minutes.
            IndexWriteError: the index cannot be written.
        """
        if not self._store.database.path.exists():
            return
        try:
            with (
                explained_writes(self.index_path.parent),
                FileLock(self.index_path.parent / ".build.lock", timeout=_BUILD_WAIT),
            ):
                self._passages.bring_up(self._store)
        except Timeout:
            raise IndexLockedError(
                f"another process has been building in {self.index_path.parent} for {_BUILD_WAIT / 60:.0f} minutes; "
                "wait for it, then try again"
            ) from None
        self.write_metadata()

    def search(
        self, query: str, k: int = 5, min_quality: str | None = None, where: Where | None = None
    ) -> list[EvidencePassage]:
        """Search all sources.

        Args:
            query: a claim, a question, or keywords.
            k: at most this many passages.
            min_quality: only passages of sources with this grade or a better one.
            where: only passages whose metadata match this (see :mod:`nlp_retrieval.core.filters`): ``title``, ``url`` (with
                ``eq`` and ``in`` any URL of a text in any form, else the first in canonical form), ``quality``,
                ``fetch_date``, ``source`` (the SHA-256 of the text), ``start``, ``end``.

        Returns:
            Passages, best first; none before :meth:`build_index`. A text with several URLs is shown under the first, with
            the best of its grades.

        Raises:
            InputError: the query is not a string, k is less than 1, the minimum is not a grade, or the filter is invalid.
            IndexStateError: the index is damaged, or was built for another searcher; ``build_index`` rebuilds it.
        """
        (passages,) = self.search_all([query], k, min_quality, where)
        return passages

    def search_all(
        self, queries: Sequence[str], k: int = 5, min_quality: str | None = None, where: Where | None = None
    ) -> list[list[EvidencePassage]]:
        """Search all sources for many queries, as :meth:`search` does, in one batch."""
        grades = at_least(min_quality)
        filters = [where] if where is not None and parse_filter(where) else []
        filters += [{"quality": {"in": grades}}] if grades is not None else []
        joined: Where | None = {"and": filters} if filters else None
        by_source = None if joined is None else _by_source(joined, self.source)
        stored_of, text_of = cache(self._store.stored), cache(lambda sha256: self._store.texts(sha256).get(sha256))

        def wanted(result: RetrievalResult) -> bool:
            text = text_of(place_of(result.item.item_id)[0])
            return text is not None and text.newest and (grades is None or text.quality in grades)

        def passages_of(results: Iterable[RetrievalResult]) -> Iterator[EvidencePassage]:
            for result in results:
                sha256, number = place_of(result.item.item_id)
                stored, text = stored_of(sha256), text_of(sha256)
                if stored is not None and text is not None and number in range(len(stored.spans)):  # not deleted meanwhile
                    yield stored.passage(text, stored.spans[number], result.score, result.signals)

        step_of = {"kind": "search", "k": k, "where": joined}
        with record_steps({**step_of, "query": query} for query in queries) as steps:
            asked, cut = check_queries(queries), check_k(k)
            lists = [list(passages_of(results)) for results in self._passages.find(asked, cut, by_source, wanted)]
            self._store.count_searches(
                (len(passages), relevance_of(query, join_title(passages[0].title, passages[0].content)) if passages else 0.0)
                for query, passages in zip(asked, lists, strict=True)
            )
            self._searched = True
            for step, passages in zip(steps, lists, strict=False):
                step["results"] = [f"{passage.key}:{passage.start}" for passage in passages]
        return lists

    def search_for_claim(self, claim: str, min_quality: str = "D") -> list[EvidencePassage]:
        """Return the five passages that are most about a claim; a verifier says whether they support it."""
        return self.search(claim, 5, min_quality)

    def metadata(self) -> dict[str, Any]:
        """Return the current content of ``index_metadata.json``; a document is a text, however many URLs it has."""
        texts, asked = self._store.texts(), self._store.searches()
        shown = ("url", "title", "quality", "fetch_date", "passage_count")
        return {
            "index_built": self._passages.is_built,
            "document_count": len(texts),
            "indexed_hashes": [text.key for text in self._indexed(texts).values()],
            "sources": {text.key: {name: getattr(text, name) for name in shown} for text in texts.values()},
            "retrieval_stats": {
                "total_queries": int(asked["queries"]),
                "avg_results_per_query": _ratio(asked["results"], asked["queries"]),
            },
        }

    def write_metadata(self) -> None:
        """Write ``index_metadata.json``; adding, deleting, building and closing do so too."""
        path = self.metadata_path
        if not self._store.database.path.exists():
            return
        try:
            with FileLock(path.with_name(f".{path.name}.lock"), timeout=_METADATA_WAIT):
                clear_asides(path, seconds=0)
                content = orjson.dumps(self.metadata(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
                write_atomically(path, content, durable=False)
        except (OSError, Timeout) as error:  # nothing is lost: all of it is stored elsewhere
            warnings.warn(
                f"{path} could not be written ({error}); the sources are stored, and the next change writes it again",
                RetrievalWarning,
                stacklevel=2,
            )

    def stats(self) -> IndexStatistics:
        """Return the numbers of documents, sources, passages, domains and searches."""
        texts, versions, asked = self._store.texts(), self._store.all_versions(), self._store.searches()
        domains = {url: registrable_domain(url) for url in {version.canonical for version in versions}}
        indexed = self._indexed(texts)
        return {
            "index_built": self._passages.is_built,
            "document_count": len(texts),
            "indexed_count": len(indexed),
            "source_count": len(domains),
            "passage_count": sum(text.passage_count for text in texts.values()),
            "indexed_passage_count": sum(text.passage_count for text in indexed.values()),
            "unique_domains": len(set(domains.values())),
            "indexed_domains": len({domains[each.canonical] for each in versions if each.newest and each.sha256 in indexed}),
            "total_queries": int(asked["queries"]),
            "zero_result_queries": int(asked["without"]),
            "avg_results_per_query": _ratio(asked["results"], asked["queries"]),
            "average_relevance": min(10.0, _ratio(asked["relevance"], asked["queries"] - asked["without"])),
        }

    def _indexed(self, texts: Mapping[str, SourceVersion]) -> dict[str, SourceVersion]:
        """Return the texts to be searched of which the index holds all passages."""
        held, _ = self._passages.held()
        return {key: text for key, text in texts.items() if text.newest and held.get(key, 0) == text.passage_count}

    @property
    def engines(self) -> list[str]:
        """Return the labels of the searcher's retrievers."""
        return list(self._passages.searcher.retrievers)

    @property
    def filter_keys(self) -> Mapping[str, str]:
        """Return the metadata keys of passages for filters, and the kinds of their values; empty if nothing is built."""
        return self._passages.held()[1]

    def was_deleted(self, url: str) -> bool:
        """Return whether there was a source under this URL that was deleted."""
        return canonical_or_empty(url) in self._store.deleted()

    @property
    def has_deleted(self) -> bool:
        """Return whether there is a URL whose source was deleted."""
        return bool(self._store.deleted())

    def source(self, url: str) -> SourceVersion | None:
        """Return the newest version of the source under a URL, in any of its forms; None if there is none."""
        return next(reversed(self.versions(url)), None)

    def versions(self, url: str) -> list[SourceVersion]:
        """Return all versions of the source under a URL, oldest first; none under what is no URL."""
        return self._store.versions(canonical_or_empty(url))

    def sources(self, match: str = "", min_quality: str | None = None) -> list[SourceVersion]:
        """Return the newest version of every URL, with some text in title or URL, and of some grade or better."""
        grades, wanted = at_least(min_quality), match.casefold().strip()
        return [
            source
            for source in self._store.all_versions()
            if source.newest
            and (grades is None or source.quality in grades)
            and (wanted in source.title.casefold() or wanted in source.url.casefold())
        ]

    def urls(self, key: str) -> list[str]:
        """Return the canonical forms of all URLs under which the text with a key was added, in the order of adding."""
        return list(dict.fromkeys(version.canonical for version in self._store.versions_of(key)))

    def text(self, key: str) -> str:
        """Return a stored text by the key of a result or a source, or the whole SHA-256; a ``QueryError`` if there is none."""
        return self._stored(key).content

    def reading(self, source: SourceVersion, claim: str) -> SourceReading | None:
        """Return what is read of a source for a claim: a short text, or the nearest passages; None if it was deleted."""
        stored = self._store.stored(source.sha256)
        if stored is None:
            return None
        passages = [stored.passage(source, span) for span in stored.spans]
        whole = f"{source.title}\n\n{stored.content}"
        if len(stored.content) <= _LONGEST_SOURCE:
            return SourceReading(stored.content, whole, [(passage.start, passage) for passage in passages])
        nearest = self.search(claim, _PASSAGES_OF_LONG_SOURCE, where={"source": source.sha256}) if source.newest else []
        starts = {passage.start for passage in nearest}
        chosen = [passage for passage in passages if passage.start in starts]
        if not chosen:  # the index does not hold the text
            best = by_shared_words(claim, [passage.content for passage in passages])[:_PASSAGES_OF_LONG_SOURCE]
            chosen = [passages[number] for number in sorted(best)]
        lengths = [len(passage.content) + 2 for passage in chosen]
        read = "\n\n".join(passage.content for passage in chosen)
        return SourceReading(read, whole, list(zip(accumulate(lengths, initial=0), chosen, strict=False)))

    def passages(self, key: str) -> list[EvidencePassage]:
        """Return all passages of a stored text by its key, in order."""
        stored = self._stored(key)
        shown = self._store.texts(stored.sha256).values()  # none if another process deleted it meanwhile
        return [stored.passage(source, span) for source in shown for span in stored.spans]

    def close(self) -> None:
        """Close the file of the sources; it is reopened when needed."""
        if self._searched:  # the searches are counted in the metadata, too
            self._searched = False
            self.write_metadata()
        self._store.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stored(self, key: str) -> StoredText:
        stored = self._store.stored(key) if isinstance(key, str) else None
        if stored is None:
            raise QueryError(f"no text of this project has the key {str(key)[:80]!r}; sources() lists them")
        return stored


def relevance_of(query: str, passage: str) -> float:
    """Return ten times the share of a query's words, without the most common ones, that its best passage has."""
    words = set(_WORD.findall(query.casefold()))
    asked = (words - STOP_WORDS) or words
    return 10 * len(asked & set(_WORD.findall(passage.casefold()))) / len(asked) if asked else 0.0


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole > 0 else 0.0


def _by_source(where: Where, source_at: Callable[[str], SourceVersion | None]) -> Where:
    """Return a filter with the URLs that it names replaced by the texts under them: the index holds one URL of each."""
    replaced: dict[str, Any] = {}
    sources: list[Where] = []
    for key, value in where.items():
        if key in ("and", "or"):
            replaced[key] = [_by_source(part, source_at) for part in value]
        elif key == "not":
            replaced[key] = _by_source(value, source_at)
        elif key in ("url", "metadata.url"):
            conditions = dict(value) if isinstance(value, Mapping) else {"eq": value}
            for operator in [each for each in ("eq", "in") if each in conditions]:
                urls = conditions[operator] if operator == "in" else [conditions[operator]]
                if all(isinstance(url, str) for url in urls):  # of others the index says what is wrong
                    del conditions[operator]
                    named = [source.sha256 for source in map(source_at, urls) if source is not None]
                    sources.append({"source": {"in": named}})
            if conditions:
                replaced[key] = conditions
        else:
            replaced[key] = value
    return replaced | {"and": [*replaced.get("and", []), *sources]} if sources else replaced


def _searcher(searcher: object, model_name: str | None) -> BaseSearcher:
    """Return the given searcher, that of a named model, or the default."""
    from nlp_retrieval import Bm25Retriever, ColbertRetriever, FaissRetriever

    if model_name is not None and searcher is not None:
        raise ConfigurationError("give either a searcher, or the model_name of a ColBERT model")
    if model_name is not None:
        return Searcher([ColbertRetriever(model_name)])
    if searcher is None:
        return Searcher([Bm25Retriever(), FaissRetriever()])
    if not isinstance(searcher, BaseSearcher):
        raise ConfigurationError(
            f"searcher={searcher!r:.80} is {type(searcher).__name__} not a searcher; pass Searcher([...]), or the name of a "
            "ColBERT model as model_name"
        )
    return searcher
