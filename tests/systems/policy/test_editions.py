"""What became of each passage from one plan to the next, against counting by hand and known changes."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval import BeirLoader, SearchableItem
from nlp_retrieval.systems.policy.demo.writing import write_collection
from nlp_retrieval.systems.policy.editions import aligned, changes_of, editions_of, n_editions, word_runs
from systems.policy.study.studies import study


def item(name: str, text: str, **metadata: object) -> SearchableItem:
    return SearchableItem(item_id=name, content=text, metadata=metadata)  # type: ignore[arg-type]


def test_added_dropped_edited_and_unchanged_are_told_apart(tmp_path: Path) -> None:
    (edition,) = study(tmp_path / "index").changes("Ostland")
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
    ("earlier", "later"),
    [
        ({"year": 2019}, {"year": 2021}),
        ({"year": "2019"}, {"year": 2021}),
        ({"year": "2021-05-09"}, {"year": "2021-05-28"}),
        ({"year": 2021}, {"date": "2021-12", "year": "2021-02"}),
        ({"year": 2021, "edition": "Draft"}, {"year": 2021, "edition": "final"}),
        ({"edition": "first"}, {"edition": "second"}),
        ({"version": "-3"}, {"version": 2.5}),
        ({"edition": "2nd", "version": "v9"}, {"edition": "2nd", "version": "v10"}),
    ],
)
def test_editions_are_ordered_by_numbers_dates_and_words(earlier: dict[str, object], later: dict[str, object]) -> None:
    items = [item("b", "later text", document="A", **later), item("a", "earlier text", document="B", **earlier)]
    assert [name for name, _ in editions_of(items)] == ["B", "A"]
    assert n_editions(items) == 2


TEXT = st.text("ab c.\n\u202eé", max_size=40)


@given(TEXT, TEXT)
def test_runs_of_words_give_both_texts_back(before: str, after: str) -> None:
    runs = word_runs(before, after)
    assert "".join(text for what, text in runs if what != "new").split() == before.split()
    assert "".join(text for what, text in runs if what != "gone") == after


def shares_by_hand(ones: list[str], others: list[str]) -> list[float]:
    """The share of each text's words that stand in no run of four that the other texts have."""
    runs = {tuple(text.split()[first : first + 4]) for text in others for first in range(max(1, len(text.split()) - 3))}
    shares = []
    for text in ones:
        words = text.split()
        size = min(4, len(words))
        carried = {
            place
            for first in range(len(words) - size + 1 if words else 0)
            if tuple(words[first : first + size]) in runs
            for place in range(first, first + size)
        }
        shares.append(1 - len(carried) / len(words) if words else 0.0)
    return shares


@pytest.mark.parametrize("seed", range(8))
def test_what_is_new_and_gone_is_what_counting_finds(seed: int) -> None:
    draw = random.Random(seed)
    parts = [" ".join(draw.choices("abcdefgh", k=draw.randint(0, 9))) for _ in range(12)]
    earlier, later = ([" ".join(draw.choices(parts, k=2)).strip() for _ in range(draw.randint(1, 7))] for _ in range(2))
    found = aligned(earlier, later)
    assert found.new.tolist() == pytest.approx(shares_by_hand(later, earlier))
    assert found.gone.tolist() == pytest.approx(shares_by_hand(earlier, later))


def test_counterparts_are_the_passages_with_most_words_in_common() -> None:
    earlier = ["one two three four five six seven", "red green blue white black", "nothing of this is left at all"]
    later = ["Red, green, blue, white ... and grey", "zero one two three four five nine", "entirely other things are said here"]
    first, second = aligned(earlier, later).counterparts
    assert (first.later, first.earlier, second.later, second.earlier) == (0, 1, 1, 0)
    assert second.carried == pytest.approx(2 * 5 / 14)
    assert aligned(earlier, later, 0.95).counterparts == []
