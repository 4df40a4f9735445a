"""Collections in BEIR's layout: corpus, queries and graded judgements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.interfaces import BaseLoader, BaseQueryLoader
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import SourceError, nearest
from nlp_retrieval.loaders.files import JsonObject, read_json_lines
from nlp_retrieval.loaders.queries.judgements import judged_queries, read_judgements
from nlp_retrieval.loaders.records import (
    as_id,
    as_text,
    as_title,
    make_item,
    make_query,
    metadata_of,
    quoted,
    with_title,
)

__all__ = ["BeirLoader"]


class BeirLoader(BaseLoader, BaseQueryLoader):
    """Items, queries and gold of a collection in BEIR's layout; every file may be gzip (``corpus.jsonl.gz``).

    ``corpus.jsonl`` has ``_id``, ``text`` and optionally ``title``; ``queries.jsonl`` has ``_id`` and ``text``;
    ``qrels/<split>.tsv`` has a query's id, an item's id and an integer grade. An object named ``metadata`` and all further
    fields become metadata. A ``family`` in a query's metadata is its family.

    Args:
        path: the folder; or a corpus file alone, without queries.
        split: the judgements: ``train``, ``dev``, ``test``. Queries without a judgement in it are left out.
    """

    name = "beir"
    manifest_may_set = may_set("split", path=READS_FILE)

    def __init__(self, path: str | Path, split: Annotated[str, Field(pattern=r"^\w[\w.-]*$")] = "test") -> None:
        self.path = path
        self.split = split

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items of the corpus in the order of the file.

        Raises:
            SourceError: there is no corpus, or a line of it is not an object with ``_id`` and ``text``.
        """
        for place, row in read_json_lines(self._corpus()):
            item_id, content = _id_and_text(place, row)
            title = as_title(place, "title", row.get("title"))
            metadata = metadata_of(place, row, ("_id", "text", "title"))
            yield make_item(place, item_id, content, with_title(place, title, metadata))

    def queries(self) -> list[Query]:
        """Return the queries that are judged in the split, in the order of the file.

        Raises:
            SourceError: a file is missing or malformed, two queries have one id, or none is judged.
        """
        return self._judged()[0]

    def gold(self) -> list[Gold]:
        """Return the judgements of these queries by item id, in the same order.

        Raises:
            SourceError: as :meth:`queries`.
        """
        return self._judged()[1]

    def _judged(self) -> tuple[list[Query], list[Gold]]:
        qrels, path = self._qrels(), self._file("queries.jsonl")
        return judged_queries(path, self._read(path), read_judgements(qrels, "tsv"), qrels)

    def _read(self, path: Path) -> Iterator[tuple[str, Query]]:
        for place, row in read_json_lines(path):
            query_id, text = _id_and_text(place, row)
            metadata = metadata_of(place, row, ("_id", "text"))
            family = metadata.get("family")
            known = None if family is None else as_id(place, "family", family)
            yield place, make_query(place, query_id, text, known, metadata)

    def _corpus(self) -> Path:
        return self._file("corpus.jsonl") if self._folder().is_dir() else self._folder()

    def _qrels(self) -> Path:
        self._require_folder("qrels")
        folder = self._folder() / "qrels"
        for path in (folder / f"{self.split}.tsv", folder / f"{self.split}.tsv.gz"):
            if path.is_file():
                return path
        splits = {path.name.split(".tsv")[0] for path in folder.glob("*.tsv*")}
        raise SourceError(f'{folder}: no judgements for split "{self.split}"; {nearest(self.split, splits)}')

    def _file(self, name: str) -> Path:
        self._require_folder(name)
        for path in (self._folder() / name, self._folder() / f"{name}.gz"):
            if path.is_file():
                return path
        found = sorted(path.name for path in self._folder().iterdir())
        raise SourceError(f"{self.path}: no {name} or {name}.gz in this folder (found: {quoted(found)})")

    def _require_folder(self, wanted: str) -> None:
        folder = self._folder()
        if folder.is_dir():
            return
        if folder.exists():
            raise SourceError(
                f"{self.path}: this is only a corpus file, without queries and gold; "
                f"pass the folder that holds {wanted}, or another query loader"
            )
        raise SourceError(f"{self.path}: no such folder; check the path (the current folder is {str(Path.cwd())!r})")

    def _folder(self) -> Path:
        return Path(self.path).expanduser()


def _id_and_text(place: str, row: JsonObject) -> tuple[str, str]:
    for field in ("_id", "text"):
        if field not in row:
            raise SourceError(
                f'{place}: no "{field}" field (found: {quoted(row)}); BEIR\'s rows have "_id" and "text", '
                "JsonlLoader reads items of other layouts"
            )
    return as_id(place, "_id", row["_id"]), as_text(place, "text", row["text"])
