"""BM25 by Lucene, with the results of pyserini.

This module decides which settings belong to the index and which to the search;
:mod:`nlp_retrieval.retrievers.pyserini.index` decides how Lucene is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.files.columns import CURE
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.pyserini.index import LuceneIndex, Rm3, build_index, check_analysis
from nlp_retrieval.retrievers.pyserini.jvm import find_jar, find_java

__all__ = ["PyseriniRetriever"]

_BATCH = 2_000


class PyseriniRetriever(BaseRetriever):
    """BM25, optionally with RM3 feedback: the same ranking and index format as pyserini's ``LuceneSearcher``.

    Needs the extra ``pyserini``, which brings its own Java. Java's heap may grow to a quarter of the
    memory; with ``JAVA_TOOL_OPTIONS=-Xmx192m`` in the environment, 300,000 passages are indexed in less than 500 MB.

    After updates, deleted items are never found, but Lucene counts them in its statistics (document frequencies, mean
    length), and feedback may read them, until :meth:`~nlp_retrieval.core.search.searcher.Searcher.compact`.

    Args:
        k1: saturation of term frequency; 0.9 is Anserini's default.
        b: normalisation by length, 0 to 1; 0.4 is Anserini's default.
        language: its analyzer splits texts and queries into terms: ``"en"``, ``"de"``, ``"zh"``, ...
        stemmer: ``"porter"``, ``"krovetz"`` or ``"none"``; only for English.
        keep_stopwords: index words such as "to", "be" and "not", which are left out otherwise; only for English.
        rm3: expand queries by pseudo-relevance feedback; an index built without it lacks the terms of its documents, and has to
            be built again.
        rm3_terms: how many terms feedback adds.
        rm3_documents: how many documents feedback reads.
        rm3_query_weight: weight of the original query against the feedback, 0 to 1.
        merge: how sub-queries of one query are merged: ``"alternate"``, ``"max"``, ``"rrf"`` or ``"round_robin"``.

    Raises:
        ConfigurationError: the language or the stemmer is unknown.

    Examples:
        >>> Searcher([PyseriniRetriever(k1=0.82, b=0.68, rm3=True)])
        Searcher(retrievers=[PyseriniRetriever(k1=0.82, b=0.68, rm3=True)])
    """

    name = "pyserini"
    manifest_may_set = may_set(
        *("k1", "b", "language", "stemmer", "keep_stopwords", "rm3", "rm3_terms", "rm3_documents", "rm3_query_weight"),
        "merge",
    )
    by_words = True
    format_version = 2
    survives_fork = False
    search_only: ClassVar[frozenset[str]] = frozenset(
        {"k1", "b", "rm3", "rm3_terms", "rm3_documents", "rm3_query_weight", "merge"}
    )

    def __init__(
        self,
        k1: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.9,
        b: Annotated[float, Field(ge=0, le=1)] = 0.4,
        language: str = "en",
        stemmer: str = "porter",
        keep_stopwords: bool = False,
        rm3: bool = False,
        rm3_terms: Annotated[int, Field(ge=1, le=10_000)] = 10,
        rm3_documents: Annotated[int, Field(ge=1, le=50)] = 10,
        rm3_query_weight: Annotated[float, Field(ge=0, le=1)] = 0.5,
        merge: MergeRule = "alternate",
    ) -> None:
        check_analysis(language, stemmer, keep_stopwords)
        self.k1 = k1
        self.b = b
        self.language = language
        self.stemmer = stemmer
        self.keep_stopwords = keep_stopwords
        self.rm3 = Rm3(rm3_terms, rm3_documents, rm3_query_weight) if rm3 else None
        self.merge = merge

    def index_identity(self) -> Config:
        return super().index_identity() | {"document_vectors": self.rm3 is not None}

    def check_ready(self) -> None:
        """Require pyserini's jar, and a Java that runs it."""
        find_jar()
        find_java()

    def build(self, items: ItemTable, folder: Path) -> None:
        self._build(items, folder, 0)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del segments
        self._build(items, folder, len(everything) - len(items))

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        self._build(items, folder, segments[0].first_row)

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        folders = [part.folder for part in segments]
        self._index = LuceneIndex(*folders, language=self.language, stemmer=self.stemmer, keep_stopwords=self.keep_stopwords)
        for segment, size in zip(segments, self._index.sizes, strict=True):
            if size != len(segment):
                raise IndexDamagedError(
                    f"{segment.folder} holds {size:,} documents, and the manifest says {len(segment):,}; {CURE}"
                )

    def _build(self, items: ItemTable, folder: Path, first_row: int) -> None:
        build_index(
            tracked("pyserini: indexing", items.texts(_BATCH), len(items)),
            folder,
            language=self.language,
            stemmer=self.stemmer,
            document_vectors=self.rm3 is not None,
            keep_stopwords=self.keep_stopwords,
            first_row=first_row,
        )

    def ignored(self, query: str) -> str | None:
        """Return the reason why a query of stop words is ignored, and how to index them; None for other queries."""
        if self._index.has_terms(query):
            return None
        if self.language == "en":
            return "stop words alone, which this index leaves out, and one with keep_stopwords=true keeps"
        return f"stop words alone, which language={self.language!r} leaves out; bm25 with stopwords null keeps them"

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        return self._index.search(queries, k, k1=self.k1, b=self.b, rm3=self.rm3, allowed=allowed)
