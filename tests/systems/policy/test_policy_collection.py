"""The invented plans: twelve countries, two plans each, known answers and changes, and the traps that are meant to be there."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from nlp_retrieval import BeirLoader, SearchableItem
from nlp_retrieval.systems.policy.demo.writing import plan_passages, write_collection

PASSAGES = plan_passages()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_collection(tmp_path_factory.mktemp("plans"))


@pytest.fixture(scope="module")
def items(folder: Path) -> list[SearchableItem]:
    return BeirLoader(folder).load()


def text_of(country: str, edition: int, key: str) -> str:
    (passage,) = [one for one in PASSAGES if (one.country, one.edition, one.key) == (country, edition, key)]
    return passage.text


def test_it_is_the_same_every_time(folder: Path, tmp_path: Path) -> None:
    again = write_collection(tmp_path)
    for path in folder.rglob("*.*"):
        assert path.read_bytes() == (again / path.relative_to(folder)).read_bytes()


def test_every_question_of_every_country_has_an_answer_in_the_second_plan(folder: Path, items: list[SearchableItem]) -> None:
    known = {item.item_id: item for item in items}
    gold = {one.query_id: one.relevance for one in BeirLoader(folder).gold()}
    queries = BeirLoader(folder).queries()
    assert len(queries) == 12 * 10
    for query in queries:
        relevance = gold[query.query_id]
        assert {known[name].metadata["country"] for name in relevance} == {query.metadata["country"]}
        if query.metadata["kind"] == "question":
            assert {known[name].metadata["edition"] for name, grade in relevance.items() if grade == 2} == {"second"}


def test_changes_are_what_the_texts_say(folder: Path, items: list[SearchableItem]) -> None:
    text = {item.item_id: item.content for item in items}
    with (folder / "changes.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert {row["later"] for row in rows} | {row["earlier"] for row in rows} == set(text) | {""}
    for row in rows:
        if row["relation"] in ("unchanged", "edited"):
            assert (text[row["later"]] == text[row["earlier"]]) is (row["relation"] == "unchanged")
        else:
            assert bool(row["later"]) is (row["relation"] == "added")
    assert {"unchanged", "edited", "added", "dropped"} == {row["relation"] for row in rows}
