"""What became of each passage from one plan to the next."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval import BeirLoader, SearchableItem
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.systems.policy.changes import changes_between, changes_of, editions_of, word_runs
from nlp_retrieval.systems.policy.demo.writing import write_collection
from nlp_retrieval.systems.policy.study import PolicyStudy


def item(name: str, text: str, **metadata: object) -> SearchableItem:
    return SearchableItem(item_id=name, content=text, metadata=metadata)  # type: ignore[arg-type]


def test_added_dropped_edited_and_unchanged_are_told_apart(asked: PolicyStudy) -> None:
    (edition,) = asked.changes("Ostland")
    assert (edition.earlier, edition.later) == ("Ostland 2019", "Ostland 2024")
    fates = {(change.later or change.earlier).item_id: change.relation for change in edition.changes}  # type: ignore[union-attr]
    assert fates == {
        "ostland-2024-power": "edited",
        "ostland-2024-windows": "unchanged",
        "ostland-2024-cost": "edited",
        "ostland-2024-panel": "added",
        "ostland-2019-coal": "dropped",
    }
    assert edition.counts() == {"unchanged": 1, "edited": 2, "added": 1, "dropped": 1}


def test_all_known_changes_of_the_invented_plans_are_found_and_no_others(tmp_path: Path) -> None:
    folder = write_collection(tmp_path)
    items = BeirLoader(folder).load()
    with (folder / "changes.tsv").open(encoding="utf-8") as file:
        known = {(row["earlier"], row["later"], row["relation"]) for row in csv.DictReader(file, delimiter="\t")}
    found = {
        (change.earlier.item_id if change.earlier else "", change.later.item_id if change.later else "", change.relation)
        for country in {one.metadata["country"] for one in items}
        for edition in changes_of(one for one in items if one.metadata["country"] == country)
        for change in edition.changes
    }
    assert found == known


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("year", [2019, 2024]),
        ("edition", ["earlier", "later"]),
        ("edition", ["first", "second"]),
        ("date", ["2019-04-01", "2024-01-09"]),
        ("version", [1, 2.5]),
    ],
)
def test_editions_are_ordered_by_what_says_so(key: str, values: list[object]) -> None:
    items = [
        item("b", "later text", document="A", **{key: values[1]}),
        item("a", "earlier text", document="B", **{key: values[0]}),
    ]
    assert [name for name, _ in editions_of(items)] == ["B", "A"]


def test_documents_without_an_order_are_no_editions() -> None:
    assert editions_of([item("a", "x", document="A"), item("b", "y", document="B")]) == []
    assert editions_of([item("a", "x", document="A", year=1), item("b", "y", document="B", year=1)]) == []
    assert changes_of([item("a", "x", document="A", year=1)]) == []


def test_editions_too_long_to_be_compared_are_named() -> None:
    editions = {2019: 1, 2022: 2001, 2025: 1}
    items = [
        SearchableItem(item_id=f"{year}-{place}", content="A dike.", metadata={"document": f"plan {year}", "year": year})
        for year, n_passages in editions.items()
        for place in range(n_passages)
    ]
    with pytest.warns(RetrievalWarning) as told:
        assert changes_of(items) == []
    assert [str(one.message).partition(":")[0] for one in told] == [
        "what changed from 'plan 2019' to 'plan 2022' is not computed",
        "what changed from 'plan 2022' to 'plan 2025' is not computed",
    ]
    assert "they have 1 and 2,001 passages" in str(told[0].message)


def test_a_passage_has_one_counterpart_at_most_and_none_is_lost() -> None:
    same = [item(f"{n}", "one text that stands several times") for n in range(3)]
    changes = changes_between(same, same[:2])
    assert sorted(change.relation for change in changes) == ["dropped", "unchanged", "unchanged"]


TEXT = st.text("ab c.\n\u202eé", max_size=40)


@given(TEXT, TEXT)
def test_runs_of_words_give_both_texts_back(before: str, after: str) -> None:
    runs = word_runs(before, after)
    assert "".join(text for what, text in runs if what != "new").split() == before.split()
    assert "".join(text for what, text in runs if what != "gone") == after


def test_texts_too_long_to_be_compared_are_shown_whole() -> None:
    before, after = "a b " * 2000, "b a " * 2000
    assert word_runs(before, after) == [("gone", before), ("new", after)]
