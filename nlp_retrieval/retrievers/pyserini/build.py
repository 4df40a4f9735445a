"""Writes a Lucene index whose document numbers are the rows of the items.

That holds because a single thread adds the documents and only neighbouring segments merge, in the end into one. Python
prepares one batch while Java indexes another. (Several threads with an index that Lucene keeps sorted by row were tried:
the sorted merge cost more than the threads saved.)

A document has three fields: its text, without positions and not stored; its zero-padded row as ``id``, which pyserini's
``LuceneSearcher`` needs to search the same folder and to break ties; and its row as a number, for filters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nlp_retrieval.errors import IndexWriteError
from nlp_retrieval.retrievers.pyserini import handles as calls
from nlp_retrieval.retrievers.pyserini.analysis import make_analyzer
from nlp_retrieval.retrievers.pyserini.jvm import Java, java_class, java_exception, reason

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
        language: one of :data:`~nlp_retrieval.retrievers.pyserini.analysis.LANGUAGES`.
        stemmer: one of :data:`~nlp_retrieval.retrievers.pyserini.analysis.STEMMERS`; for English.
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
