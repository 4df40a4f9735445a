"""The page of a study: everything is there, and nothing that documents say does anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.policy.page.page import render_study, write_study_page
from nlp_retrieval.systems.policy.study import PolicyStudy
from systems.policy.study.studies import study

HOSTILE = "<script>alert(1)</script> wind \" onclick='x' \u202e {{ 7*7 }} \x1b[31m \x00 ]]> </style> &amp; solar"


class Tags(HTMLParser):
    """Which elements a page has, its ids, and what its links lead to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> PolicyStudy:
    return study(tmp_path_factory.mktemp("page") / "index", hop=True)


def hostile_study(folder: Path) -> PolicyStudy:
    """Passages, titles, ids and a country that try to be markup."""
    country = "<b>Ile</b> \u202e\"'"
    items = [
        SearchableItem(
            item_id=f"<img src=x onerror=alert({number})>",
            content=f"{HOSTILE} number {number}",
            metadata={"country": country, "title": HOSTILE, "document": f"</title>{year}", "year": year},
        )
        for number, year in enumerate((2019, 2019, 2024))
    ]
    return study(folder / "index", items=items, description="<script>alert(2)</script>")


def test_the_overview_leads_to_every_answer_and_every_change(asked: PolicyStudy, tmp_path: Path) -> None:
    page = render_study(asked.run(tmp_path, method="both"), asked)
    tags = Tags(page)
    ids = [attributes["id"] for _, attributes in tags.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    links = {str(attributes["href"]) for attributes in tags.of("a")}
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert sum("-q" in link for link in links) == 3 * 2
    assert sum("-changes-" in link for link in links) == 3
    for text in ("Ostland", "Wind supplies", "Along relations", "By signals", "Costa_Verde.json"):
        assert text in page


def test_changes_stand_side_by_side_with_the_words_that_changed(asked: PolicyStudy, tmp_path: Path) -> None:
    page = render_study(asked.run(tmp_path, "Ostland"), asked)
    assert "supplies <del>12</del>% of the power" in page
    assert "supplies <ins>30</ins>% of the power" in page
    relations = [attributes["data-relation"] for attributes in Tags(page).of("article") if "data-relation" in attributes]
    assert sorted(map(str, relations)) == ["added", "dropped", "edited", "edited"]


def test_what_documents_say_is_shown_and_does_nothing(tmp_path: Path) -> None:
    hostile = hostile_study(tmp_path)
    path = tmp_path / "out" / "report.html"
    write_study_page(hostile.run(tmp_path / "out"), hostile, path)
    page = path.read_text("utf-8")
    tags = Tags(page)
    assert len(tags.of("script")) == len(tags.of("style")) == 1
    assert tags.of("img") == tags.of("b") == []
    assert not any(name.startswith("on") for _, attributes in tags.elements for name in attributes)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page)
    assert "[U+202E]" in page
    assert "{{ 7*7 }}" in page
    policy = next(str(one["content"]) for one in tags.of("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search(r"(?:src|href)=\"?(?:https?:)?//", page)
