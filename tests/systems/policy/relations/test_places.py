"""Where passages stand, as their metadata tell it."""

from __future__ import annotations

import pytest

from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.policy.hop.versions import Place, RelationFields

FIELDS = RelationFields("country", "document", "position", ("year", "edition"), ("draft", "final"))


def place(**metadata: object) -> Place:
    return FIELDS.place_of(SearchableItem.model_validate({"item_id": "a", "content": "", "metadata": metadata}))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"year": 2019}, {"year": 2021}),
        ({"year": "2019"}, {"year": 2021}),
        ({"year": "2021-05-09"}, {"year": "2021-05-28"}),
        ({"year": 2021}, {"year": "2021-02"}),
        ({"year": 2021, "edition": "Draft"}, {"year": 2021, "edition": "final"}),
        ({"edition": "draft"}, {"edition": "final"}),
        ({"edition": "-3"}, {"edition": "2.5"}),
    ],
)
def test_versions_are_ordered_by_numbers_dates_and_told_words(earlier: dict[str, object], later: dict[str, object]) -> None:
    one, other = place(country="Alder", **earlier).version, place(country="Alder", **later).version
    assert one is not None
    assert other is not None
    assert one < other


@pytest.mark.parametrize(
    "metadata",
    [{"edition": "third"}, {"year": True}, {"year": 10**400}, {"year": [2020]}, {"edition": {"a": 1}}],
)
def test_what_cannot_be_ordered_is_in_no_version(metadata: dict[str, object]) -> None:
    assert place(country="Alder", **metadata).version is None


def test_without_a_subject_a_document_is_a_family_and_without_both_there_is_none() -> None:
    assert place(country="Alder", document="x", year=1).family == place(country="Alder", document="y", year=2).family
    assert place(document="x", year=1).family == place(document="x", year=2).family != place(document="y", year=1).family
    assert place(document="Alder").family != place(country="Alder").family
    assert place(document=True).family != place(document=False).family != ""
    assert (place(year=2020).family, place(year=2020).version, place(country=["a"]).family) == ("", None, "")


@pytest.mark.parametrize(("told", "position"), [(3, 3.0), (2.5, 2.5), (True, None), ("3", None), (None, None), (10**400, None)])
def test_positions_are_numbers(told: object, position: float | None) -> None:
    assert place(document="x", position=told).position == position
