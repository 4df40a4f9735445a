"""Collections in BEIR's layout: corpus, queries and graded judgements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.interfaces import BaseLoader, BaseQueryLoader
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import SourceError, nearest
from nlp_retrieval.loaders.files import JsonObject, read_json_lines, read_lines
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

_HEADER_GRADES = {"score", "relevance", "rel", "grade", "label"}
_GRADE = re.compile(r"[+-]?[0-9]{1,9}")


class BeirLoader(BaseLoader, BaseQueryLoader):
    """Items, queries and gold of a collection in BEIR's layout; every file may be gzip (``corpus.jsonl.gz``).

    ``corpus.jsonl`` has ``_id``, ``text`` and, where there are titles, ``title``; ``queries.jsonl`` has ``_id`` and
    ``text``; ``qrels/<split>.tsv`` has a query's id, an item's id and an integer grade. An object named ``metadata``
    and all further fields become metadata. A query's ``family``, where its metadata has one, is its family.

    Args:
        path: the folder; or only a corpus file, without queries.
        split: which judgements: ``train``, ``dev``, ``test``. Queries without a judgement in it are left out.
    """

    name = "beir"

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
            SourceError: a file is missing or malformed, or the judgements name queries that do not exist.
        """
        return self._queries(self._judgements())

    def gold(self) -> list[Gold]:
        """Return the judgements of these queries by item id, in the same order.

        Raises:
            SourceError: as :meth:`queries`.
        """
        judgements = self._judgements()
        return [Gold(query_id=q.query_id, relevance=judgements[q.query_id]) for q in self._queries(judgements)]

    def _queries(self, judgements: dict[str, dict[str, int]]) -> list[Query]:
        path = self._file("queries.jsonl")
        places: dict[str, str] = {}
        queries: list[Query] = []
        for place, row in read_json_lines(path):
            query_id, text = _id_and_text(place, row)
            if query_id in places:
                raise SourceError(f'{place}: the id "{query_id}" is taken by {places[query_id]}; ids must be unique')
            places[query_id] = place
            if query_id in judgements:
                metadata = metadata_of(place, row, ("_id", "text"))
                family = metadata.get("family")
                known = None if family is None else as_id(place, "family", family)
                queries.append(make_query(place, query_id, text, known, metadata))
        unknown = [query_id for query_id in judgements if query_id not in places]
        if unknown:
            raise SourceError(
                f"{self._qrels()}: {len(unknown)} of its {len(judgements)} queries are not in {path}, "
                f'first "{unknown[0]}"; are both files of the same collection?'
            )
        return queries

    def _judgements(self) -> dict[str, dict[str, int]]:
        path = self._qrels()
        judgements: dict[str, dict[str, int]] = {}
        for number, line in read_lines(path):
            place = f"{path}, line {number}"
            cells = [cell.strip() for cell in line.split("\t")]
            if cells == [""]:
                continue
            if len(cells) != 3 or not cells[0] or not cells[1]:
                raise SourceError(f"{place}: expected query id, item id and grade, separated by tabs, found {line[:80]!r}")
            query_id, item_id, grade = cells
            if number == 1 and grade.lower() in _HEADER_GRADES:
                continue
            if not _GRADE.fullmatch(grade):
                raise SourceError(f"{place}: the grade {grade[:40]!r} is not an integer; 0 is not relevant, 1 and up is")
            grades = judgements.setdefault(query_id, {})
            if grades.setdefault(item_id, int(grade)) != int(grade):
                raise SourceError(
                    f'{place}: item "{item_id}" has grade {grade} here and {grades[item_id]} above '
                    f'for query "{query_id}"; keep one'
                )
        if not judgements:
            raise SourceError(f"{path}: it holds no judgements; choose another split")
        return judgements

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
