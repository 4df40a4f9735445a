"""Items, queries and gold from ``ir_datasets``, the catalogue of collections (MacAvaney et al., SIGIR 2021).

If the user names a collection that is not on this machine, that library downloads it into its own folder (``IR_DATASETS_HOME``)
when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nlp_retrieval.core.components.interfaces import BaseQueryLoader
from nlp_retrieval.core.components.trust_rules import given, may_set
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.errors import DependencyError, RetrievalError, SourceError, install, nearest
from nlp_retrieval.loaders.fields import RecordLoader, joined_text, without_fields
from nlp_retrieval.loaders.files import JsonObject
from nlp_retrieval.loaders.queries.judgements import Judgement, collect_judgements, judged_queries
from nlp_retrieval.loaders.records import as_id, make_query
from nlp_retrieval.loaders.values import plain_value

__all__ = ["IrDatasetsLoader"]


class IrDatasetsLoader(RecordLoader, BaseQueryLoader):
    """Items, queries and gold of a collection in ``ir_datasets`` (the extra ``ir-datasets``).

    Queries without a relevant document are left out. Of judgements by subtopic, the highest grade of a document counts.

    Args:
        path: the name of the data set, such as ``beir/scifact/test`` or ``msmarco-passage/trec-dl-2019/judged``.
        content_field: the field of a document that holds the text, or several, which are joined by line ends.
        title_field: the field that holds the title, if there is one. None: the items have no titles.
        metadata_fields: the fields to keep as metadata. None: all the others.
        query_field: the field of a query that holds its text, or several. None: the library's default text.
    """

    name = "ir_datasets"
    manifest_may_set = may_set(
        *("content_field", "title_field", "metadata_fields", "query_field"),
        path=given("load, or download, the data set"),
    )

    def __init__(
        self,
        path: str,
        content_field: str | Sequence[str] = "text",
        title_field: str | None = "title",
        metadata_fields: Sequence[str] | None = None,
        query_field: str | Sequence[str] | None = None,
    ) -> None:
        super().__init__("doc_id", content_field, title_field, metadata_fields)
        self.path = path
        self.query_field = query_field

    def records(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield the documents as objects.

        Raises:
            DependencyError: ``ir_datasets`` is not installed.
            SourceError: there is no such data set, it has no documents, or cannot be downloaded.
        """
        for place, document in self._all("docs"):
            yield place, _as_row(place, document)

    def queries(self) -> list[Query]:
        """Return the queries that have a relevant document, in the order of the data set.

        Raises:
            SourceError: as :meth:`records`, for its queries and judgements.
        """
        return self._asked()[0]

    def gold(self) -> list[Gold]:
        """Return the judgements of these queries by item id, in the same order.

        Raises:
            SourceError: as :meth:`queries`.
        """
        return self._asked()[1]

    def _asked(self) -> tuple[list[Query], list[Gold]]:
        judgements = collect_judgements(self._judgements(), f"the qrels of {self.path}")
        return judged_queries(f"the queries of {self.path}", self._read(), judgements, f"the qrels of {self.path}")

    def _judgements(self) -> Iterator[Judgement]:
        for place, judged in self._all("qrels"):
            # which differs for each; the library's data cannot be corrected, so of several grades the highest counts
            yield place, str(judged.query_id), str(judged.doc_id), judged.relevance, place

    def _read(self) -> Iterator[tuple[str, Query]]:
        for place, query in self._all("queries"):
            row = _as_row(place, query)
            text = (
                query.default_text() if self.query_field is None else joined_text(place, row, self.query_field, "query_field")
            )
            used = [self.query_field] if isinstance(self.query_field, str) else self.query_field or ["text"]
            metadata = without_fields(row, ["query_id", *used])
            yield place, make_query(place, as_id(place, "query_id", row["query_id"]), text, metadata=metadata)

    def _all(self, what: str) -> Iterator[tuple[str, Any]]:
        found = self._opened()
        if not getattr(found, f"has_{what}")():
            raise SourceError(
                f"{self.path}: this data set has no {what}; name the part of it that has (such as {self.path}/test)"
            )
        entries: Callable[[], Any] = getattr(found, f"{what}_iter")
        number = 0
        try:
            for number, entry in enumerate(entries(), start=1):
                yield f"{self.path}, {what} {number}", entry
        except RetrievalError:
            raise
        except Exception as error:  # the library and its readers raise any exceptions
            given = f"after {number:,} it gives no more {what}" if number else f"it gives no {what}"
            raise SourceError(
                f"{self.path}: {given} ({_first_words(error)}); where it is not downloaded, check the network, or copy the "
                "folder of ir_datasets (IR_DATASETS_HOME) from a machine that has it"
            ) from error

    def _opened(self) -> Any:
        try:
            import ir_datasets
        except ImportError:
            raise DependencyError(f"IrDatasetsLoader needs ir_datasets: {install('ir-datasets')}") from None
        try:
            return ir_datasets.load(self.path)
        except KeyError:
            known = nearest(str(self.path), ir_datasets.registry).partition(" (valid:")[0]
            hint = known if known.startswith("did you mean") else "its catalogue lists what there is: https://ir-datasets.com"
            raise SourceError(f"{self.path}: ir_datasets knows no data set of this name; {hint}") from None


def _first_words(error: Exception) -> str:
    """Return the library's own message for an error: it puts the errors of all sources, unshortened, behind a sentence."""
    said = error.args[0] if error.args else type(error).__name__
    while isinstance(said, tuple) and said:
        said = said[0]
    return str(said)[:200]


def _as_row(place: str, entry: Any) -> JsonObject:
    """A named tuple as an object; those within it too."""
    return {name: plain_value(place, name, _plain(value)) for name, value in entry._asdict().items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
