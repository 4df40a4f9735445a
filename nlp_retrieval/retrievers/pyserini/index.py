"""BM25 and RM3 by Lucene itself: queries in, rows and scores out.

Calls from Python to Java are slow, so few are made: fields are used again for every document, a query takes three calls, and
the hits of a batch come back as one text of JSON, which Jackson writes (the library for JSON in Anserini's jar).

Lucene's document number is the item's row, and in Lucene the lower number wins
a tie, also at the cut, as everywhere in this package. Queries are built by Anserini's generator and analyzers, so the ranking
is that of pyserini's ``LuceneSearcher`` on the same folder.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.errors import ConfigurationError, EngineError, IndexDamagedError, IndexWriteError, nearest
from nlp_retrieval.retrievers.pyserini.jvm import Java, calling, cast, java_class

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
    if language != "en" and (stemmer != "porter" or keep_stopwords):
        raise ConfigurationError(
            f"stemmer and keep_stopwords are for English; the analyzer of language={language!r} has its own: leave them out"
        )


def make_analyzer(language: str, stemmer: str, keep_stopwords: bool = False) -> Java:
    """Return Anserini's analyzer of a language; stemmer and stop words matter only for English."""
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
# That holds because a single thread adds the documents and only neighbouring segments merge, in the end into one.
#
# A document has three fields: its text, without positions and not stored; its zero-padded row as ``id``, which pyserini's
# ``LuceneSearcher`` needs to search the same folder and to break ties; and its row as a number, for filters.

_RAM_MB = 64.0
_DOCUMENT, _INDEX = "org.apache.lucene.document", "org.apache.lucene.index"

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
    """Index batches of texts into an empty folder, from row ``first_row`` of the whole index on, in bounded memory."""
    writing = partial(calling, IndexWriteError, f"Lucene cannot write its index to {folder}")
    row = first_row
    with writing():
        settings = java_class(f"{_INDEX}.IndexWriterConfig")(make_analyzer(language, stemmer, keep_stopwords))
        settings.setRAMBufferSizeMB(_RAM_MB)
        settings.setUseCompoundFile(False)
        settings.setMergePolicy(java_class(f"{_INDEX}.LogDocMergePolicy")())
        writer = java_class(f"{_INDEX}.IndexWriter")(_directory(folder), settings)
        add = _adder(writer, document_vectors)
    try:
        for batch in texts:
            with writing():
                for text in batch:
                    add(row, text)
                    row += 1
        with writing():
            writer.forceMerge(1)
            writer.close()
    except BaseException:
        with writing():
            writer.rollback()  # which closes it
        raise
    (folder / "write.lock").unlink(missing_ok=True)


def _adder(writer: Java, document_vectors: bool) -> Callable[[int, str], None]:
    """Return a function that adds a row and its text; all share one document, as Lucene's manual advises."""
    bytes_of = java_class("org.apache.lucene.util.BytesRef")
    content_type = java_class(f"{_DOCUMENT}.FieldType")()
    content_type.setIndexOptions(java_class(f"{_INDEX}.IndexOptions").DOCS_AND_FREQS)
    content_type.setStoreTermVectors(document_vectors)
    item_id = java_class(f"{_DOCUMENT}.StoredField")("id", "")
    sortable_id = java_class(f"{_DOCUMENT}.BinaryDocValuesField")("id", bytes_of(b""))
    no_text = cast("java.lang.CharSequence", java_class("java.lang.String")(""))
    contents = java_class(f"{_DOCUMENT}.Field")("contents", no_text, content_type)
    number = java_class(f"{_DOCUMENT}.IntField")(ROW, 0, java_class(f"{_DOCUMENT}.Field$Store").NO)
    document = java_class(f"{_DOCUMENT}.Document")()
    for field in (item_id, sortable_id, contents, number):
        document.add(field)

    def add(row: int, text: str) -> None:
        name = f"{row:010d}"
        item_id.setStringValue(name)
        sortable_id.setBytesValue(bytes_of(name.encode()))
        contents.setStringValue(_encodable(text))
        number.setIntValue(row)
        writer.addDocument(document)

    return add


def _encodable(text: str) -> str:
    """Return the text with U+FFFD in place of lone surrogates, which cannot be sent to Java."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _directory(folder: Path) -> Java:
    """Lucene's memory-mapped view of a folder; Java takes a relative path from the folder in which it was started."""
    path = java_class("java.nio.file.Paths").get(str(folder.absolute()))
    return java_class("org.apache.lucene.store.MMapDirectory")(path)


# Searching.

_HITS_AT_ONCE = 200_000
_FEW = 0.1  # below this share of allowed rows, Lucene filters itself
_FEEDBACK_POOL = 50  # how many documents Anserini fetches before RM3 takes the best of them
_SEARCH = "org.apache.lucene.search"

_left: list[Java] = []
"""Readers of indexes no longer in use; closed when the next is opened, or Java might keep their files mapped for ever."""

_List = tuple[NDArray[np.integer], NDArray[np.floating]]
_Find = Callable[[list[str], int], list[_List]]


@dataclass(frozen=True)
class Rm3:
    """How many terms pseudo-relevance feedback adds, from how many documents, and the weight of the original query, 0 to 1."""

    terms: int = 10
    documents: int = 10
    query_weight: float = 0.5


class LuceneIndex:
    """The folders that :func:`build_index` wrote, in the order of their rows, opened as one index; any thread may search it."""

    def __init__(self, *folders: Path, language: str, stemmer: str, keep_stopwords: bool = False) -> None:
        self.folder = folders[0]
        readers = []
        for folder in folders:
            with calling(IndexDamagedError, f"{folder} holds no Lucene index that can be read"):
                reader = java_class(f"{_INDEX}.DirectoryReader").open(_directory(folder))
                readers.append(cast(f"{_INDEX}.IndexReader", reader))
        with self._calling():
            while _left:
                _left.pop().close()
            self._analyzer = make_analyzer(language, stemmer, keep_stopwords)
            self._generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
            # a query of 100,000 characters has more than the 1,024 terms that Lucene allows by default
            java_class(f"{_SEARCH}.IndexSearcher").setMaxClauseCount(2**31 - 1)
            self._reader = readers[0]
            if len(readers) > 1:
                self._reader = cast(f"{_INDEX}.IndexReader", java_class(f"{_INDEX}.MultiReader")(readers, True))
            contents = java_class(f"{_INDEX}.FieldInfos").getMergedFieldInfos(self._reader).fieldInfo("contents")
            self._has_vectors = contents is not None and bool(contents.hasVectors())
            self.sizes = [int(reader.maxDoc()) for reader in readers]
        weakref.finalize(self, _left.append, self._reader).atexit = False

    def __len__(self) -> int:
        return sum(self.sizes)

    def has_terms(self, text: str) -> bool:
        """Return whether the analyzer leaves any term of a text."""
        with self._calling():
            return bool(self._terms(text).size())

    def search(
        self, queries: list[str], k: int, *, k1: float, b: float, rm3: Rm3 | None = None, allowed: Mask | None = None
    ) -> Hits:
        """Return at most k hits per query, best first, ties by row, with Lucene's own scores; feedback uses all items."""
        if rm3 is not None and not self._has_vectors:
            raise ConfigurationError(f"{self.folder} was built without document vectors, which RM3 needs")
        n_allowed = len(self) if allowed is None else int(np.count_nonzero(allowed))
        k = min(k, n_allowed)
        if k == 0:
            return Hits.from_lists([(np.zeros(0, np.int64), np.zeros(0))] * len(queries))
        queries = [_encodable(query) for query in queries]
        with self._calling():
            searcher = java_class(f"{_SEARCH}.IndexSearcher")(self._reader)
            searcher.setSimilarity(java_class(f"{_SEARCH}.similarities.BM25Similarity")(float(k1), float(b)))
            if rm3 is not None:
                find = partial(self._with_feedback, searcher, rm3)
            elif allowed is not None and n_allowed < _FEW * len(self):
                rows = np.flatnonzero(allowed).tolist()
                only = cast(f"{_SEARCH}.Query", java_class(f"{_DOCUMENT}.IntField").newSetQuery(ROW, *rows))
                return Hits.from_lists(self._by_words(searcher, only, queries, k))
            else:
                find = partial(self._by_words, searcher, None)
            return Hits.from_lists(find(queries, k) if allowed is None else self._allowed_of(find, queries, k, allowed))

    def _allowed_of(self, find: _Find, queries: list[str], k: int, allowed: Mask) -> list[_List]:
        """Fetch more hits until every query has k allowed ones or there are no more."""
        share = np.count_nonzero(allowed) / len(self)
        # a few rows left out (deleted items) cost few hits; if many are left out, fetch twice the average need
        depth = min(len(self), int((1.25 if share > 0.9 else 2.0) * k / share) + 10)
        lists = []
        for query, hits in zip(queries, find(queries, depth), strict=True):
            (rows, scores), wider = hits, depth
            while np.count_nonzero(allowed[rows]) < k and len(rows) == wider < len(self):
                wider = min(len(self), 4 * wider)
                ((rows, scores),) = find([query], wider)
            keep = np.flatnonzero(allowed[rows])[:k]
            lists.append((rows[keep], scores[keep]))
        return lists

    def _by_words(self, searcher: Java, only: Java | None, queries: list[str], k: int) -> list[_List]:
        """Search for queries as they are; ``only`` is a query for the rows that may be found, or None for all."""
        lists: list[_List] = []
        size = max(1, _HITS_AT_ONCE // k)
        for first in range(0, len(queries), size):
            answers = java_class("java.util.ArrayList")()
            for query in queries[first : first + size]:
                words = self._query(query)
                answers.add(searcher.search(words if only is None else _restricted(words, only), k))
            lists += [_columns(hits["scoreDocs"]) for hits in json.loads(_hits_as_json().writeValueAsString(answers))]
        return lists

    def _with_feedback(self, searcher: Java, rm3: Rm3, queries: list[str], k: int) -> list[_List]:
        """Search, let Anserini's RM3 expand each query by the results, and search again."""
        scored = java_class("io.anserini.search.ScoredDocs")
        arguments = java_class("io.anserini.search.SearchCollection$Args")()
        arguments.hits = k
        expander = java_class("io.anserini.rerank.lib.Rm3Reranker")(
            self._analyzer, None, "contents", rm3.terms, rm3.documents, rm3.query_weight, False, True
        )
        lists: list[_List] = []
        for query in queries:
            first = scored.fromTopDocs(searcher.search(self._query(query), min(_FEEDBACK_POOL, len(self))), searcher)
            settings = searcher, None, None, None, query, self._terms(query), None, arguments
            reranked = expander.rerank(first, java_class("io.anserini.rerank.RerankerContext")(*settings))
            lists.append((np.array(reranked.lucene_docids, np.int64), np.array(reranked.scores, np.float32)))
        return lists

    def _query(self, text: str) -> Java:
        return cast(f"{_SEARCH}.Query", self._generator.buildQuery("contents", self._analyzer, text))

    def _terms(self, text: str) -> Java:
        return java_class("io.anserini.analysis.AnalyzerUtils").analyze(self._analyzer, text)

    def _calling(self) -> AbstractContextManager[None]:
        return calling(EngineError, f"Lucene failed while searching {self.folder}")


def _restricted(query: Java, only: Java) -> Java:
    """Return a query with the same scores that finds only what ``only`` finds."""
    builder, occur = java_class(f"{_SEARCH}.BooleanQuery$Builder")(), java_class(f"{_SEARCH}.BooleanClause$Occur")
    builder.add(query, occur.MUST)
    builder.add(only, occur.FILTER)
    return cast(f"{_SEARCH}.Query", builder.build())


@cache
def _hits_as_json() -> Java:
    """Return what writes a list of Lucene's results as JSON, each hit as ``[doc, score, shard]``."""
    mapper = java_class("com.fasterxml.jackson.databind.ObjectMapper")()
    mapper.configure(java_class("com.fasterxml.jackson.databind.MapperFeature").SORT_PROPERTIES_ALPHABETICALLY, True)
    form = "com.fasterxml.jackson.annotation.JsonFormat"
    hit = java_class("java.lang.Class").forName(f"{_SEARCH}.ScoreDoc")
    mapper.configOverride(hit).setFormat(java_class(f"{form}$Value").forShape(java_class(f"{form}$Shape").ARRAY))
    return mapper


def _columns(hits: list[list[float]]) -> _List:
    """The rows and scores of hits; a score that Java wrote as text is the same float32 again."""
    numbers = np.array(hits, np.float64).reshape(-1, 3)
    return numbers[:, 0].astype(np.int64), numbers[:, 1].astype(np.float32)
