"""The page of a sweep in Chromium: what is pointed at, filtered, opened, copied and drawn is what was measured."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from evaluation.test_rankings import lists_of
from hashed_words import InMemory

from bench.browser import opened, wait_until
from nlp_retrieval import Benchmarker, BenchmarkRun, Bm25Retriever, Gold, Query, Searcher
from nlp_retrieval.evaluation.ranking_difference import HitDifference, difference
from nlp_retrieval.reports.figures import best_first, by_figure
from nlp_retrieval.reports.findings import headline
from nlp_retrieval.reports.page.page import write_page
from reports.report_data import compared_report, configuration, report_of

from .test_page import ATTACK

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

K1, B = [0.4, 0.8, 1.2, 1.6], [0.1, 0.4, 0.7, 0.9]
WORDS = "fox whale tree river bridge castle novel film director painter island queen album singer orbit harbour".split()


def names(number: int) -> list[str]:
    return [f"{start}{'aeiou'[number % 5]}{end}{number}" for start, end in (("zan", "dor"), ("mel", "kir"))]


def passages() -> list[str]:
    """Passages of 60 words, with two names of their own far from their beginning."""
    draw = random.Random(2)
    texts = []
    for number in range(60):
        words = draw.choices(WORDS, k=60)
        for place, name in zip((40, 52), names(number), strict=True):
            words[place] = name
        texts.append(" ".join(words))
    return texts


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkRun:
    """A sweep of sixteen configurations with names as long as people give them, and a baseline beside it."""
    asked = [(f"q{n}", [n, (7 * n + 3) % 60]) for n in range(24)]
    draw = random.Random(5)
    texts = {query: " ".join([draw.choice(WORDS), *(names(n)[0] for n in found), draw.choice(WORDS)]) for query, found in asked}
    grid = Benchmarker.grid({"retrievers": [Bm25Retriever()]}, {"retrievers.bm25.k1": K1, "retrievers.bm25.b": B})
    named = {f"lexical_with_the_usual_stemmer/{name}": searcher for name, searcher in grid.items()}
    return Benchmarker(
        {"bm25": Searcher([Bm25Retriever(k1=0.9, stemmer="none")]), **named},
        InMemory(passages(), [f"Page {n}" for n in range(60)]),
        [Query(query_id=query, text=text) for query, text in texts.items()],
        [Gold(query_id=query, relevance={f"d{n}": 1 for n in found}) for query, found in asked],
        (2, 5),
        index_path=tmp_path_factory.mktemp("sweep") / "index",
        latency_queries=8,
    ).run()


@pytest.fixture(scope="module")
def path(ran: BenchmarkRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("page") / "report.html"
    write_page(ran.report, target, ran.lists, ran.per_query)
    return target


@pytest.fixture
def problems() -> Iterator[list[str]]:
    said: list[str] = []
    yield said
    assert said == []


def opened_page(browser: Browser, path: Path, problems: list[str], **look: Any) -> Page:
    page = opened(browser, path.as_uri(), problems, **look)
    wait_until(page, "!!document.getElementById('explorer').dataset.ready")
    return page


def texts_of(page: Page, selector: str) -> list[str]:
    return [one.strip() for one in page.locator(selector).all_text_contents()]


def tags(hit: HitDifference, *, is_other: bool) -> list[str]:
    moved = {"entered": "+ entered", "left": "\N{MINUS SIGN} left", "same": "same rank"}.get(hit.movement)
    if moved is None:
        where = f"from {hit.one_rank}" if is_other else f"to {hit.other_rank}"
        moved = f"{'↑ up' if hit.movement == 'up' else '↓ down'} {abs(hit.up or 0)}, {where}"
    return [*(["★ gold"] if hit.grade else []), moved]


def test_two_lists_of_a_query_are_shown_as_their_difference_is_computed(
    browser: Browser, path: Path, ran: BenchmarkRun, problems: list[str]
) -> None:
    page = opened_page(browser, path, problems)
    names = list(ran.lists.listings)
    best = next(result.name for result in best_first(ran.report) if result.name != ran.report.baseline)
    chosen = [page.locator(f"#explorer-{which}").evaluate("e => e.selectedOptions[0].label") for which in ("one", "other")]
    assert chosen == [ran.report.baseline, best]
    page.select_option("#explorer-other", label=names[1])
    before, after = (ran.per_query[name]["recall@5"] for name in (names[0], names[1]))
    gains = (after - before).round(4)
    said = f"24 of 24 queries: {(gains > 0).sum()} won, {(gains == 0).sum()} tied, {(gains < 0).sum()} lost"
    assert page.locator("#explorer-count").inner_text() == said
    order = page.locator("#explorer-queries option").evaluate_all("all => all.map(e => Number(e.value))")
    assert order == sorted(range(24), key=lambda query: (-abs(gains[query]), query))
    page.select_option("#explorer-queries", value=str(order[3]))
    for swapped in (False, True):
        pair = names[1::-1] if swapped else names[:2]
        found = difference(ran.lists, *pair, ran.lists.query_ids[order[3]], 10)
        for which, hits in enumerate((found.one_list, found.other_list)):
            rows = page.locator(f"#explorer-shown .lists section:nth-of-type({which + 1}) .hit").all()
            shown = [[row.locator(".id").inner_text(), row.locator(".tags span").all_inner_texts()] for row in rows]
            assert shown == [[hit.item_id, tags(hit, is_other=bool(which))] for hit in hits]
        missed = page.locator("#explorer-shown .missed .id").all_inner_texts()
        assert missed == [gold.item_id for gold in found.missed]
        page.click("#explorer-swap")
    hit = page.locator("#explorer-shown .hit").first
    assert hit.locator(".snippet mark").count() > 0
    hit.locator("summary").click()
    score = ran.lists.listings[names[0]].scores[ran.lists.listings[names[0]].of(order[3]).start]
    assert f"{float(f'{score:.4g}'):g}" in hit.locator(".signals").inner_text()
    page.fill("#explorer-search", ran.lists.query_ids[7])
    assert page.locator("#explorer-queries option").count() == 1
    assert page.locator("#explorer-shown .asked").inner_text() == ran.lists.texts[7]
    again = opened(browser, page.url, problems)
    wait_until(again, "!!document.getElementById('explorer').dataset.ready")
    assert again.locator("#explorer-shown .asked").inner_text() == ran.lists.texts[7], "the address holds the choice"
    assert again.locator("#explorer-other").evaluate("e => e.selectedOptions[0].label") == names[1]


def test_the_table_sorts_filters_and_is_kept_as_csv_as_it_is_shown(
    browser: Browser, path: Path, ran: BenchmarkRun, problems: list[str], tmp_path: Path
) -> None:
    page = opened_page(browser, path, problems)
    rows = "#comparison tbody:not([hidden]) tr:not([hidden]) th.name bdi"
    given = texts_of(page, rows)
    assert given == [result.name for result in best_first(ran.report)]
    page.click("#comparison thead th.main button")
    main = {result.name: round(result.measures[ran.report.main_measure], 3) for result in ran.report.configurations}
    turned = [main[name] for name in texts_of(page, rows)]
    assert turned == sorted(turned)
    page.click("#comparison thead th.main button")
    assert texts_of(page, rows) == given
    page.fill("#filter", "k1=1.6 -b=0.1")
    with page.expect_download() as saved:
        page.locator("section[aria-labelledby=results] .tools button").click()
    saved.value.save_as(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    wanted = {one.name: one for one in best_first(ran.report) if "k1=1.6" in one.name and "b=0.1" not in one.name}
    assert [row["Configuration"] for row in found] == list(wanted)
    for row in found:
        assert row["Recall@5"] == f"{wanted[row['Configuration']].measures['recall@5']:.3f}"
        assert "MRR@5" not in row, "hidden columns stay out"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_axe_finds_nothing(browser: Browser, path: Path, problems: list[str], width: int, dark: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened_page(browser, path, problems, width=width, dark=dark)
    page.locator("#explorer-shown .hit summary").first.evaluate("line => line.click()")
    page.locator("#configurations summary").nth(1).evaluate("line => line.click()")
    found = Axe().run(page).response["violations"]
    assert [f"{one['id']}: {node['html'][:150]} {node['failureSummary']}" for one in found for node in one["nodes"][:2]] == []


def test_texts_of_passages_and_queries_run_nothing(browser: Browser, problems: list[str], tmp_path: Path) -> None:
    hostile = f"harmless {ATTACK} <mark>not a mark</mark> <svg onload=alert(1)> \u202e end"
    lists = lists_of({"one": [[("a", 2.0, {})]], "other": [[("b", 1.0, {"s": 1.0})]]}, {"q0": {"a": 1, "gold alone": 1}}, 1)
    lists = replace(lists, passages=dict.fromkeys(["a", "b", "gold alone"], hostile))
    lists.texts[0] = "alert onload script <svg onload=alert(1)> harmless"
    report = report_of(configuration("one", {"recall@5": 0.4}), configuration("other", {"recall@5": 0.2}), k_values=[5])
    values = {"one": {"recall@5": np.array([0.4])}, "other": {"recall@5": np.array([0.2])}}
    write_page(report, tmp_path / "hostile.html", lists, values)
    page = opened_page(browser, tmp_path / "hostile.html", problems)
    shown = page.locator("#explorer-shown")
    visible = hostile.replace("\u202e", "[U+202E]")
    assert shown.locator(".snippet").first.inner_text() == visible
    assert "harmless" in shown.locator(".snippet mark").all_inner_texts()
    assert page.locator("img").count() == 0
    assert shown.locator("svg, script").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_the_first_screen_answers_which_is_best_by_how_much_is_it_real_and_what_does_it_cost(
    browser: Browser, problems: list[str], tmp_path: Path, dark: bool
) -> None:
    report = compared_report()
    write_page(report, tmp_path / "report.html")
    page = opened(browser, (tmp_path / "report.html").as_uri(), problems, height=800, dark=dark)
    test = by_figure(report)["", "recall@21", "hybrid"]
    (best,) = [result for result in report.configurations if result.name == "hybrid"]
    assert best.cost is not None
    answers = {
        entry.locator("dt").inner_text(): entry.locator("dd").inner_text().split("\n")
        for entry in page.locator(".answers div").all()
    }
    assert answers["Which is best?"] == ["hybrid", f"Recall@21: {best.measures['recall@21']:.3f}"]
    low, high = test.interval
    assert answers["By how much?"] == [f"{test.difference:+.3f} Recall@21", f"{low:+.3f} to {high:+.3f} over bm25"]
    assert test.p_holm < 0.0005
    assert answers["Is it real?"] == [
        "yes: p <0.001",
        "corrected for 3 comparisons",
        f"{test.wins} queries won, 0 tied, 0 lost",
    ]
    assert answers["What does it cost?"][:2] == [f"{best.cost.latency_ms:.2f} ms per query", "bm25: 5.00 ms"]
    assert page.locator("#finding").inner_text() == headline(report)
    for shown in (page.locator("#finding"), page.locator("header .chart"), *page.locator(".answers div").all()):
        box = shown.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 800, "without scrolling"
    assert not page.locator("#tested p").first.is_visible(), "statistics are folded"
