"""BM25 and RM3 by Lucene itself: queries in, rows and scores out.

Lucene is fast and calls from Python to Java are slow, so whole batches cross at once and the loops over them run inside
Java (:mod:`nlp_retrieval.retrievers.pyserini.handles`). No stored field is read while searching.

Lucene's document number is the item's row, and in Lucene the lower number wins
a tie, also at the cut, as everywhere in this package. Queries are built by Anserini's generator and analyzers, so the ranking
is that of pyserini's ``LuceneSearcher`` on the same folder.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.errors import ConfigurationError, EngineError, IndexDamagedError, IndexWriteError, nearest
from nlp_retrieval.retrievers.pyserini import handles as calls
from nlp_retrieval.retrievers.pyserini.jvm import Java, cast, java_class, java_exception, reason, start

# Anserini's analyzers, which turn text into terms, the same for documents and queries.


STEMMERS = ("porter", "krovetz", "none")
_WHITESPACE = ("ha", "so", "sw", "yo")  # pyserini splits these at spaces: Lucene has no analyzer for them
LANGUAGES = (
    *("ar", "bn", "da", "de", "en", "es", "fa", "fi", "fr", "ha", "hi", "hu", "id", "it", "ja", "ko"),
    *("nl", "no", "pl", "pt", "ru", "so", "sv", "sw", "te", "th", "tr", "uk", "yo", "zh"),
)


def check_analysis(language: str, stemmer: str, keep_stopwords: bool = False) -> None:
    """Raise :class:`ConfigurationError` unless Lucene has an analyzer for them; does not start Java."""
    if language not in LANGUAGES:
        raise ConfigurationError(f"language={language!r} has no analyzer; {nearest(language, LANGUAGES)}")
    if stemmer not in STEMMERS:
        raise ConfigurationError(f"stemmer={stemmer!r} is unknown; {nearest(stemmer, STEMMERS)}")
    if language != "en" and stemmer != "porter":
        raise ConfigurationError(
            f"stemmer={stemmer!r} is for English; the analyzer of language={language!r} has its own: leave it out"
        )
    if language != "en" and keep_stopwords:
        raise ConfigurationError(
            f"keep_stopwords is for English; the analyzer of language={language!r} has its own stop words: leave it out"
        )


def make_analyzer(language: str, stemmer: str, keep_stopwords: bool = False) -> Java:
    """Return Anserini's analyzer of a language; stemmer and stop words matter only for English."""
    check_analysis(language, stemmer, keep_stopwords)
    if language == "en":
        analyzers = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
        no_words = [java_class("org.apache.lucene.analysis.CharArraySet").EMPTY_SET] if keep_stopwords else []
        if stemmer == "none":
            return analyzers.newNonStemmingInstance(*no_words)
        return analyzers.newStemmingInstance(stemmer, *no_words)
    if language in _WHITESPACE:
        return java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    return java_class("io.anserini.analysis.AnalyzerMap").getLanguageSpecificAnalyzer(language)


# Writes a Lucene index whose document numbers are the rows of the items.
#
# That holds because a single thread adds the documents and only neighbouring segments merge, in the end into one. Python
# prepares one batch while Java indexes another. (Several threads with an index that Lucene keeps sorted by row were tried:
# the sorted merge cost more than the threads saved.)
#
# A document has three fields: its text, without positions and not stored; its zero-padded row as ``id``, which pyserini's
# ``LuceneSearcher`` needs to search the same folder and to break ties; and its row as a number, for filters.


_RAM_MB = 64.0
_LUCENE = "org.apache.lucene"
_DOCUMENT, _INDEX = f"{_LUCENE}.document", f"{_LUCENE}.index"
_STRING = "java.lang.String"

ROW = "row"
"""Field of a document that holds its row in the whole index."""


def build_index(
    texts: Iterable[list[str]],
    folder: Path,
    *,
    language: str,
    stemmer: str,
    document_vectors: bool,
    keep_stopwords: bool = False,
    first_row: int = 0,
) -> None:
    """Index texts into an empty folder. Memory is bounded by a batch and Lucene's buffer of 64 MB.

    Args:
        texts: batches of texts, in row order. An empty text keeps its row, and is never found.
        folder: where Lucene writes; its files are final when this returns.
        language: one of :data:`~nlp_retrieval.retrievers.pyserini.index.LANGUAGES`.
        stemmer: one of :data:`~nlp_retrieval.retrievers.pyserini.index.STEMMERS`; for English.
        keep_stopwords: make terms of English stop words.
        document_vectors: also store each document's terms, which RM3 needs.
        first_row: row of the first text in the whole index, for texts that join one; Lucene counts documents from 0.

    Raises:
        ConfigurationError: there is no such analyzer.
        IndexWriteError: Lucene cannot write there.
    """
    with _writing(folder):
        with calls.calling:
            directory = open_directory(folder)
            writer = _open_writer(directory, make_analyzer(language, stemmer, keep_stopwords))
            content_type = _content_type(document_vectors)
        try:
            _add_all(texts, writer, content_type, first_row)
            _finish(writer)
        finally:
            with calls.calling:
                with suppress(java_exception()):
                    writer.rollback()  # closes it; after a success there is nothing to roll back
                directory.close()
    (folder / "write.lock").unlink(missing_ok=True)


def _open_writer(directory: Java, analyzer: Java) -> Java:
    settings = java_class(f"{_INDEX}.IndexWriterConfig")(analyzer)
    settings.setRAMBufferSizeMB(_RAM_MB)
    settings.setUseCompoundFile(False)
    settings.setMergePolicy(java_class(f"{_INDEX}.LogDocMergePolicy")())
    return java_class(f"{_INDEX}.IndexWriter")(directory, settings)


def _add_all(texts: Iterable[list[str]], writer: Java, content_type: Java, row: int) -> None:
    """Add the batches in order: Java indexes one while Python prepares the next."""
    running = None
    try:
        for batch in texts:
            if not batch:
                continue
            with calls.calling:
                ids = calls.java_list([f"{number:010d}" for number in range(row, row + len(batch))])
                document = _document_maker(ids, calls.java_list(batch), content_type)
                add = calls.method(f"{_INDEX}.IndexWriter", "addDocument", "long", "java.lang.Iterable").bindTo(writer)
                action = calls.chain(document, add).asType(calls.signature("void", "int"))
                task = calls.for_each_index(len(batch), action)
            _result(running)
            with calls.calling:
                running = calls.submit(calls.pool("build", 1), task)
            row += len(batch)
    finally:
        # even if reading the texts fails: the writer must not be rolled back while a task is running
        _result(running)


def _finish(writer: Java) -> None:
    """Merge all segments into one, then sync and close the files."""
    with calls.calling:
        merge = calls.method(f"{_INDEX}.IndexWriter", "forceMerge", "void", "int").bindTo(writer)
        merge = calls.fill(merge, 0, calls.constant("int", 1))
        close = calls.method(f"{_INDEX}.IndexWriter", "close", "void").bindTo(writer)
    for step in (merge, close):
        with calls.calling:
            running = calls.submit(calls.pool("build", 1), step.asType(calls.signature("java.lang.Object")))
        _result(running)


def _result(task: Java | None) -> None:
    if task is not None:
        calls.wait(task)
        with calls.calling:
            task.get()


def _document_maker(ids: Java, texts: Java, content_type: Java) -> Java:
    """Return a handle from a position in these lists to a document: stored id, id for breaking ties, text, row."""
    get = calls.method("java.util.List", "get", "java.lang.Object", "int")
    item_id = get.bindTo(ids).asType(calls.signature(_STRING, "int"))
    text = get.bindTo(texts).asType(calls.signature("java.lang.CharSequence", "int"))
    to_bytes = calls.constructor(f"{_LUCENE}.util.BytesRef", "java.lang.CharSequence")
    stored = calls.constructor(f"{_DOCUMENT}.StoredField", _STRING, _STRING).bindTo("id")
    sortable = calls.constructor(f"{_DOCUMENT}.BinaryDocValuesField", _STRING, f"{_LUCENE}.util.BytesRef").bindTo("id")
    field_type = f"{_INDEX}.IndexableFieldType"
    field = calls.constructor(f"{_DOCUMENT}.Field", _STRING, "java.lang.CharSequence", field_type).bindTo("contents")
    fields = [
        calls.chain(item_id, stored),
        calls.chain(item_id, to_bytes.asType(calls.signature(f"{_LUCENE}.util.BytesRef", _STRING)), sortable),
        calls.chain(text, calls.fill(field, 1, calls.constant(field_type, content_type))),
    ]
    store = f"{_DOCUMENT}.Field$Store"
    number = calls.constructor(f"{_DOCUMENT}.IntField", _STRING, "int", store).bindTo(ROW)
    fields.append(
        calls.chain(
            item_id,
            calls.static("java.lang.Integer", "parseInt", "int", _STRING),
            calls.fill(number, 1, calls.constant(store, java_class(store).NO)),
        )
    )
    document = calls.static("java.util.List", "of", "java.util.List", *["java.lang.Object"] * 4)
    for position, part in enumerate(fields):
        document = calls.fill(document, position, part.asType(calls.signature("java.lang.Object", "int")))
    return calls.join_arguments(document, "java.util.List", "int", 4).asType(calls.signature("java.lang.Iterable", "int"))


def _content_type(document_vectors: bool) -> Java:
    content_type = java_class(f"{_DOCUMENT}.FieldType")()
    content_type.setIndexOptions(java_class(f"{_INDEX}.IndexOptions").DOCS_AND_FREQS)
    content_type.setStoreTermVectors(document_vectors)
    return content_type


def open_directory(folder: Path) -> Java:
    """Return Lucene's memory-mapped view of a folder; Java takes a relative path from the folder in which it was started."""
    path = java_class("java.nio.file.Paths").get(str(folder.absolute()))
    return java_class(f"{_LUCENE}.store.MMapDirectory")(path)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except java_exception() as error:
        raise IndexWriteError(f"Lucene cannot write its index to {folder}: {reason(error)}") from error


_HITS_AT_ONCE = 2_000_000
_FEEDBACK_HITS_AT_ONCE = 100_000  # Anserini keeps a stored document in memory for each
_QUERIES_AT_ONCE = 10_000
_SHORT_LIST = 1000  # hits of a list whose number is not asked for before they are copied
_FEW = 0.1  # below this share of allowed rows, Lucene filters itself
_FEEDBACK_POOL = 50  # how many documents Anserini fetches before RM3 takes the best of them

_SEARCH = f"{_LUCENE}.search"
_SEARCHER, _QUERY, _TOP_DOCS = f"{_SEARCH}.IndexSearcher", f"{_SEARCH}.Query", f"{_SEARCH}.TopDocs"
_SCORE_DOC, _SCORE_DOCS = f"{_SEARCH}.ScoreDoc", f"[L{_SEARCH}.ScoreDoc;"
_ANALYZER = f"{_LUCENE}.analysis.Analyzer"
_SCORED, _ARGUMENTS = "io.anserini.search.ScoredDocs", "io.anserini.search.SearchCollection$Args"

_left: list[Java] = []
"""Readers of indexes no longer in use; closed when the next is opened, or Java might keep their files mapped for ever."""


def _close_remaining() -> None:
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
            _close_remaining()
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
                    results = calls.apply_to_one(calls.java_list(queries), self._finder((k1, b, k, rm3, allowed, True)))
                    return _top_lists(results, k if k <= _SHORT_LIST else None)
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
    read_docs = calls.static(_SCORED, "fromTopDocs", _SCORED, _TOP_DOCS, _SEARCHER)
    first = calls.chain(search, calls.fill(read_docs, 1, calls.constant(_SEARCHER, searcher)))
    fields = (_SEARCHER, "java.lang.Object", _QUERY, _STRING, _STRING, "java.util.List", _QUERY, _ARGUMENTS)
    make = calls.constructor(context, *fields)
    tokens = calls.static("io.anserini.analysis.AnalyzerUtils", "analyze", "java.util.List", _ANALYZER, _STRING)
    # RM3 reads only these; filled from the last argument to the first, so that the others keep their positions
    fillers = {0: searcher, 1: None, 2: None, 3: None, 6: None, 7: arguments}
    for number in range(7, -1, -1):
        if number in fillers:
            make = calls.fill(make, number, calls.constant(fields[number], fillers[number]))
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
