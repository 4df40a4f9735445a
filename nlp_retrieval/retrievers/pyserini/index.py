"""BM25 and RM3 by Lucene itself: queries in, rows and scores out.

Lucene is fast and calls from Python to Java are slow, so whole batches cross at once and the loops over them run inside
Java (:mod:`nlp_retrieval.retrievers.pyserini.handles`). No stored field is read while searching.

Lucene's document number is the item's row (:mod:`nlp_retrieval.retrievers.pyserini.build`), and in Lucene the lower number wins
a tie, also at the cut, as everywhere in this package. Queries are built by Anserini's generator and analyzers, so the ranking
is that of pyserini's ``LuceneSearcher`` on the same folder.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.errors import ConfigurationError, EngineError, IndexDamagedError
from nlp_retrieval.retrievers.pyserini import handles as calls
from nlp_retrieval.retrievers.pyserini.analysis import make_analyzer
from nlp_retrieval.retrievers.pyserini.build import ROW, build_index, open_directory
from nlp_retrieval.retrievers.pyserini.jvm import Java, cast, java_class, java_exception, reason, start

__all__ = ["LuceneIndex", "Rm3", "build_index"]

_HITS_AT_ONCE = 2_000_000
_FEEDBACK_HITS_AT_ONCE = 100_000  # Anserini keeps a stored document in memory for each
_QUERIES_AT_ONCE = 10_000
_SHORT_LIST = 1000  # hits of a list whose number is not asked for before they are copied
_FEW = 0.1  # below this share of allowed rows, Lucene filters itself
_FEEDBACK_POOL = 50  # how many documents Anserini fetches before RM3 takes the best of them

_LUCENE = "org.apache.lucene"
_INDEX, _SEARCH = f"{_LUCENE}.index", f"{_LUCENE}.search"
_SEARCHER, _QUERY, _TOP_DOCS = f"{_SEARCH}.IndexSearcher", f"{_SEARCH}.Query", f"{_SEARCH}.TopDocs"
_SCORE_DOC, _SCORE_DOCS = f"{_SEARCH}.ScoreDoc", f"[L{_SEARCH}.ScoreDoc;"
_STRING, _ANALYZER = "java.lang.String", f"{_LUCENE}.analysis.Analyzer"
_SCORED, _ARGUMENTS = "io.anserini.search.ScoredDocs", "io.anserini.search.SearchCollection$Args"

_left: list[Java] = []
"""Readers of indexes no longer in use; closed when the next is opened, or Java might keep their files mapped for ever."""


def _close_left() -> None:
    while _left:
        _left.pop().close()


_List = tuple[NDArray[np.integer], NDArray[np.floating]]
_NOTHING: _List = (np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True)
class Rm3:
    """Pseudo-relevance feedback (Abdul-Jaleel et al., TREC 2004) as in Anserini.

    Args:
        terms: how many terms to expand the query by.
        documents: how many of the first search's best documents to take them from.
        query_weight: weight of the original query against the expansion, 0 to 1.
    """

    terms: int = 10
    documents: int = 10
    query_weight: float = 0.5


_Finder = tuple[float, float, int, Rm3 | None, bytes | None, bool]
"""k1, b, depth, feedback, the bits of the allowed rows, and whether hits come as a list of one array."""


class LuceneIndex:
    """An index, opened for searching from any thread; files are memory-mapped.

    Several folders are searched as one index, with statistics over all their documents (Lucene's ``MultiReader``).

    Args:
        folders: folders written by :func:`build_index`, in the order of their rows.
        language: the language that they were built with.
        stemmer: the stemmer that they were built with.
        keep_stopwords: whether English stop words are terms, as when they were built.

    Raises:
        IndexDamagedError: there is no Lucene index in a folder, or it cannot be read.
        ForkError: Java ran when this process was forked.
    """

    def __init__(self, *folders: Path, language: str, stemmer: str, keep_stopwords: bool = False) -> None:
        start()
        with calls.calling:
            _close_left()
            self._analyzer = make_analyzer(language, stemmer, keep_stopwords)
            # a query of 100,000 characters has more than the 1,024 terms that Lucene allows by default
            java_class(_SEARCHER).setMaxClauseCount(2**31 - 1)
            readers = [_opened(folder) for folder in folders]
            self._reader = readers[0]
            if len(readers) > 1:
                self._reader = cast(f"{_INDEX}.IndexReader", java_class(f"{_INDEX}.MultiReader")(readers, True))
            self._has_vectors = _has_vectors(self._reader)
            self.sizes = [int(reader.maxDoc()) for reader in readers]
        self._finders: dict[_Finder, Java] = {}
        self.folder = folders[0]
        weakref.finalize(self, _left.append, self._reader).atexit = False

    def __len__(self) -> int:
        return sum(self.sizes)

    def has_terms(self, text: str) -> bool:
        """Return whether the analyzer leaves any term of a text."""
        with calls.calling:
            return bool(java_class("io.anserini.analysis.AnalyzerUtils").analyze(self._analyzer, text).size())

    def search(
        self,
        queries: list[str],
        k: int,
        *,
        k1: float,
        b: float,
        rm3: Rm3 | None = None,
        threads: int = 1,
        allowed: Mask | None = None,
    ) -> Hits:
        """Search for a batch of queries.

        Args:
            queries: any strings; Lucene's query syntax has no meaning in them.
            k: at most this many hits per query.
            k1: BM25's saturation of term frequency.
            b: BM25's normalisation by length.
            rm3: expand the queries by feedback; the index must have document vectors.
            threads: how many Java threads search.
            allowed: ``[items]``; only rows where it is True are returned. Feedback uses all items.

        Returns:
            Per query its hits, best first, ties by row; the scores are Lucene's own.
        """
        if rm3 is not None and not self._has_vectors:
            raise ConfigurationError(f"{self.folder} was built without document vectors, which RM3 needs")
        finder = (k1, b, rm3)
        if allowed is None:
            return Hits.from_lists(self._find_all(queries, min(k, len(self)), finder, threads))
        n_allowed = int(np.count_nonzero(allowed))
        if rm3 is None and n_allowed < _FEW * len(self):
            bits = np.packbits(allowed).tobytes()
            return Hits.from_lists(self._find_all(queries, min(k, n_allowed), finder, threads, bits))
        return Hits.from_lists(self._find_allowed(queries, k, finder, threads, allowed))

    def _find_allowed(
        self, queries: list[str], k: int, finder: tuple[float, float, Rm3 | None], threads: int, allowed: Mask
    ) -> list[_List]:
        """Fetch more hits until every query has k allowed ones or there are no more.

        If many rows are allowed, this is cheaper than a filter in Lucene; with feedback there can be no filter, because
        feedback uses all items.
        """
        n_allowed = int(np.count_nonzero(allowed))
        k = min(k, n_allowed)
        allowed_lists: list[_List] = [_NOTHING] * len(queries)
        waiting = list(range(len(queries))) if k else []
        # a few rows left out (deleted items) cost few hits; if many are left out, fetch twice the average need
        spread = 1.25 if n_allowed > 0.9 * len(self) else 2.0
        depth = min(len(self), int(spread * k * len(self) / max(n_allowed, 1)) + 10)
        while waiting:
            lists = self._find_all([queries[number] for number in waiting], depth, finder, threads)
            short = []
            for number, (rows, scores) in zip(waiting, lists, strict=True):
                keep = np.flatnonzero(allowed[rows])[:k]
                allowed_lists[number] = (rows[keep], scores[keep])
                if len(keep) < k and len(rows) == depth:
                    short.append(number)
            waiting = short if depth < len(self) else []
            depth = min(len(self), depth * 4)
        return allowed_lists

    def _find_all(
        self,
        queries: list[str],
        k: int,
        finder: tuple[float, float, Rm3 | None],
        threads: int,
        allowed: bytes | None = None,
    ) -> list[_List]:
        if not queries or k == 0:
            return [_NOTHING] * len(queries)
        k1, b, rm3 = finder
        step = max(1, min(_QUERIES_AT_ONCE, (_FEEDBACK_HITS_AT_ONCE if rm3 else _HITS_AT_ONCE) // k))
        lists: list[_List] = []
        try:
            if len(queries) == 1 and rm3 is None:  # waiting for a task would take longer than most searches
                with calls.calling:
                    found = calls.apply_to_one(calls.java_list(queries), self._finder((k1, b, k, rm3, allowed, True)))
                    return _top_lists(found, k if k <= _SHORT_LIST else None)
            for start in range(0, len(queries), step):
                with calls.calling:
                    batch = calls.java_list(queries[start : start + step])
                    task = calls.apply_to_all(batch, self._finder((k1, b, k, rm3, allowed, False)), threads)
                calls.wait(task)
                with calls.calling:
                    lists += _scored_lists(task.get()) if rm3 else _top_lists(task.get())
        except java_exception() as error:
            raise EngineError(f"Lucene failed while searching {self.folder}: {reason(error)}") from error
        return lists

    def _finder(self, wanted: _Finder) -> Java:
        """Return the handle from a query string to its hits; cached, because creating it costs more than a query."""
        finder = self._finders.get(wanted)
        if finder is None:
            if len(self._finders) >= 32:
                self._finders.clear()  # other threads keep using theirs
            finder = self._finders[wanted] = self._make_finder(*wanted)
        return finder

    def _make_finder(self, k1: float, b: float, k: int, rm3: Rm3 | None, allowed: bytes | None, alone: bool) -> Java:
        searcher = java_class(_SEARCHER)(self._reader)
        searcher.setSimilarity(java_class(f"{_SEARCH}.similarities.BM25Similarity")(float(k1), float(b)))
        generator = "io.anserini.search.query.BagOfWordsQueryGenerator"
        build = calls.method(generator, "buildQuery", _QUERY, _STRING, _ANALYZER, _STRING)
        build = build.bindTo(java_class(generator)()).bindTo("contents").bindTo(self._analyzer)
        if allowed is not None:
            bits = np.unpackbits(np.frombuffer(allowed, np.uint8), count=len(self))
            build = calls.chain(build, _restricted_to(np.flatnonzero(bits)))
        depth = k if rm3 is None else min(_FEEDBACK_POOL, len(self))
        search = calls.method(_SEARCHER, "search", _TOP_DOCS, _QUERY, "int").bindTo(searcher)
        search = calls.chain(build, calls.fill(search, 1, calls.constant("int", depth)))
        if rm3 is None:
            search = calls.chain(search, calls.getter(_TOP_DOCS, "scoreDocs", _SCORE_DOCS))
            return calls.listed(search, _SCORE_DOCS) if alone else search
        return _with_feedback(search, searcher, self._analyzer, k, rm3)


def _restricted_to(rows: NDArray[np.int64]) -> Java:
    """Return the handle from a query to a query with the same scores that finds only these rows."""
    occur, builder = f"{_SEARCH}.BooleanClause$Occur", f"{_SEARCH}.BooleanQuery$Builder"
    named = cast(_QUERY, java_class("org.apache.lucene.document.IntField").newSetQuery(ROW, *rows.tolist()))
    add = calls.method(builder, "add", builder, _QUERY, occur)
    scored = calls.fill(add, 2, calls.constant(occur, java_class(occur).MUST))
    scored = calls.fill(scored, 0, calls.constructor(builder))
    restrict = calls.fill(add, 2, calls.constant(occur, java_class(occur).FILTER))
    restrict = calls.fill(restrict, 1, calls.constant(_QUERY, named))
    built = calls.method(builder, "build", f"{_SEARCH}.BooleanQuery").asType(calls.signature(_QUERY, builder))
    return calls.chain(scored, restrict, built)


def _with_feedback(search: Java, searcher: Java, analyzer: Java, k: int, rm3: Rm3) -> Java:
    """Return the handle for a search, Anserini's RM3 on its results, and a second search with the expanded query."""
    reranker, context = "io.anserini.rerank.lib.Rm3Reranker", "io.anserini.rerank.RerankerContext"
    arguments = java_class("io.anserini.search.SearchCollection$Args")()
    arguments.hits = k
    expander = java_class(reranker)(analyzer, None, "contents", rm3.terms, rm3.documents, rm3.query_weight, False, True)
    read = calls.static(_SCORED, "fromTopDocs", _SCORED, _TOP_DOCS, _SEARCHER)
    first = calls.chain(search, calls.fill(read, 1, calls.constant(_SEARCHER, searcher)))
    fields = (_SEARCHER, "java.lang.Object", _QUERY, _STRING, _STRING, "java.util.List", _QUERY, _ARGUMENTS)
    make = calls.constructor(context, *fields)
    tokens = calls.static("io.anserini.analysis.AnalyzerUtils", "analyze", "java.util.List", _ANALYZER, _STRING)
    # RM3 reads only these; filled from the last argument to the first, so that the others keep their positions
    fillers = {0: searcher, 1: None, 2: None, 3: None, 6: None, 7: arguments}
    for place in range(7, -1, -1):
        if place in fillers:
            make = calls.fill(make, place, calls.constant(fields[place], fillers[place]))
    make = calls.fill(make, 1, tokens.bindTo(analyzer))
    rerank = calls.method(reranker, "rerank", _SCORED, _SCORED, context).bindTo(expander)
    both = calls.fill(calls.fill(rerank, 1, make), 0, first)
    return calls.join_arguments(both, _SCORED, _STRING, 3)


def _top_lists(lists: Java, most: int | None = None) -> list[_List]:
    """Copy a Java list of ``ScoreDoc[]`` to Python; for a single list, the most hits it holds may be given."""
    if most is not None:
        rows, scores = calls.columns(lists, most, _row_and_score())
        return [(rows, scores.view("<f4"))]
    counts = calls.lengths(lists, _SCORE_DOCS)
    rows, scores = calls.columns(lists, int(counts.sum()), _row_and_score())
    cuts = np.cumsum(counts)[:-1]
    return list(zip(np.split(rows, cuts), np.split(scores.view("<f4"), cuts), strict=True))


@cache
def _row_and_score() -> Java:
    bits = calls.static("java.lang.Float", "floatToRawIntBits", "int", "float")
    score = calls.chain(calls.getter(_SCORE_DOC, "score", "float"), bits)
    return calls.two_columns(_SCORE_DOCS, calls.getter(_SCORE_DOC, "doc", "int"), score)


def _scored_lists(lists: Java) -> list[_List]:
    """Copy a Java list of Anserini's ``ScoredDocs`` to Python, one by one: feedback itself takes far longer."""
    scored = (lists.get(number) for number in range(lists.size()))
    return [(np.array(docs.lucene_docids, np.int64), np.array(docs.scores, np.float32)) for docs in scored]


def _opened(folder: Path) -> Java:
    try:
        reader = java_class(f"{_INDEX}.DirectoryReader").open(open_directory(folder))
    except java_exception() as error:
        raise IndexDamagedError(f"{folder} holds no Lucene index that can be read: {reason(error)}") from error
    return cast(f"{_INDEX}.IndexReader", reader)


def _has_vectors(reader: Java) -> bool:
    infos = java_class(f"{_INDEX}.FieldInfos").getMergedFieldInfos(reader)
    contents = infos.fieldInfo("contents")
    return bool(contents is not None and contents.hasVectors())
