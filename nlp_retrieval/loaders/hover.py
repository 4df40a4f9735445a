"""HoVer: claims that take facts from two to four Wikipedia pages (Jiang et al., 2020, https://hover-nlp.github.io)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from nlp_retrieval.core.components.interfaces import BaseQueryLoader
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.files import JsonObject
from nlp_retrieval.loaders.json_list import read_json_objects
from nlp_retrieval.loaders.records import as_id, as_text, make_query, released_field, supporting_titles

__all__ = ["HoverLoader"]

_NO_GOLD = "HoVer's test release withholds the supporting facts: use the train or dev release"


class HoverLoader(BaseQueryLoader):
    """Claims and gold titles from HoVer's own release files (``hover_train_release_v1.1.json``, ``hover_dev_...``).

    Gold is keyed by title, each distinct supporting title with grade 1. Claims written from the same HotpotQA question have its
    id (``hpqa_id``) as their family. Queries have ``hops`` and ``label`` in their metadata.

    Args:
        path: the release file, one JSON list, plain or gzip.
        hops: keep only claims with these numbers of hops (HoVer has 2, 3 and 4). None: all.
        label: keep only claims with this label. None: both.
    """

    name = "hover"
    manifest_may_set = may_set("hops", "label", path=READS_FILE)

    def __init__(
        self,
        path: str | Path,
        hops: Annotated[Sequence[Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = None,
        label: Literal["SUPPORTED", "NOT_SUPPORTED"] | None = None,
    ) -> None:
        self.path = path
        self.hops = hops
        self.label = label

    def queries(self) -> list[Query]:
        """Return the kept claims, in the order of the file; the test release has claims too.

        Raises:
            SourceError: the file is missing or malformed, or no claim is kept.
        """
        queries: list[Query] = []
        for place, uid, row in self._claims():
            family = row.get("hpqa_id")
            metadata: JsonObject = {
                name: row[field] for name, field in (("hops", "num_hops"), ("label", "label")) if field in row
            }
            text = as_text(place, "claim", _field(place, row, "claim"))
            queries.append(make_query(place, uid, text, None if family is None else as_id(place, "hpqa_id", family), metadata))
        return queries

    def gold(self) -> list[Gold]:
        """Return the supporting titles of these claims, in the same order.

        Raises:
            SourceError: as :meth:`queries`, and for a release without supporting facts.
        """
        return [
            Gold(query_id=uid, relevance=dict.fromkeys(supporting_titles(place, row, _NO_GOLD), 1), by="title")
            for place, uid, row in self._claims()
        ]

    def _claims(self) -> Iterator[tuple[str, str, JsonObject]]:
        places: dict[str, str] = {}
        left_out: Counter[str] = Counter()
        kept = False
        for place, row in read_json_objects(self.path):
            uid = as_id(place, "uid", _field(place, row, "uid"))
            if uid in places:
                raise SourceError(f'{place}: the uid "{uid}" is taken by {places[uid]}; uids must be unique')
            places[uid] = place
            if self._fits(place, row):
                kept = True
                yield place, uid, row
            else:
                left_out[f"{row.get('num_hops')} hops {row.get('label')}"[:80]] += 1
        if not kept:
            found = ", ".join(f"{what}: {count}" for what, count in sorted(left_out.items())[:8]) or "an empty list"
            raise SourceError(
                f"{self.path}: no claim fits hops={self.hops!r}, label={self.label!r} (found: {found}); change the filter"
            )

    def _fits(self, place: str, row: JsonObject) -> bool:
        return (self.hops is None or _field(place, row, "num_hops") in self.hops) and (
            self.label is None or _field(place, row, "label") == self.label
        )


def _field(place: str, row: JsonObject, field: str) -> JsonValue:
    return released_field(place, row, field, "HoVer")
