"""The page of a sweep in Chromium: what is pointed at, filtered, opened, copied and drawn is what was measured."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from evaluation.test_rankings import lists_of
from hashed_words import InMemory
from PIL import Image

from nlp_retrieval import Benchmarker, BenchmarkRun, Bm25Retriever, Gold, Query, Searcher
from nlp_retrieval.reports.figures import best_first, by_figure
from nlp_retrieval.reports.findings import headline
from nlp_retrieval.reports.page.page import write_page
from nlp_retrieval.reports.snippets import common_words, shared_spans, snippet
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
def browser() -> Iterator[Browser]:
    from bench.browser import chromium

    with chromium() as started:
        yield started


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
    from bench.browser import opened, wait_for_texts

    page = opened(browser, path.as_uri(), problems, **look)
    wait_for_texts(page)
    return page


def opened_alone(browser: Browser, path: Path, problems: list[str], **look: Any) -> Page:
    """A page without lists of queries."""
    from bench.browser import opened

    return opened(browser, path.as_uri(), problems, **look)


def texts_of(page: Page, selector: str) -> list[str]:
    return [one.strip() for one in page.locator(selector).all_text_contents()]


def test_a_hit_shows_the_part_of_its_text_that_the_query_is_about_and_all_of_it_when_it_is_opened(
    browser: Browser, path: Path, ran: BenchmarkRun, problems: list[str]
) -> None:
    page = opened_page(browser, path, problems)
    lists = ran.lists
    query_id = page.locator("#explorer-shown .facts bdi").first.inner_text()
    query = lists.texts[lists.number_of(query_id)]
    common = common_words([lists.passages[item] for item in lists.item_ids if item in lists.passages], lists.texts)
    assert set(query.split()) & set(WORDS) <= common
    hits = page.locator("#explorer-shown .hit")
    assert hits.count() > 4
    marked = 0
    for number in range(hits.count()):
        hit = hits.nth(number)
        text = lists.passages[hit.locator(".id bdi").inner_text()]
        spans = shared_spans(text, query, common)
        begin, end = snippet(text, spans)
        shown = hit.locator(".snippet")
        assert shown.inner_text() == ("… " if begin else "") + text[begin:end] + (" …" if end < len(text) else "")
        inside = [text[first:last] for first, last in spans if begin <= first and last <= end]
        assert shown.locator("mark").all_inner_texts() == inside
        hit.locator("summary").click()
        assert hit.locator(".passage").inner_text() == text
        assert hit.locator(".passage mark").all_inner_texts() == [text[first:last] for first, last in spans]
        assert not shown.is_visible()
        assert hit.locator(".signals").is_visible()
        marked += len(inside)
    assert marked


DRAWN = ".chart:has(g[data-series])"


def lit(page: Page) -> set[str]:
    """The configurations that stand out in every chart."""
    charts = [
        set(chart.locator("g.lit").evaluate_all("all => all.map(e => e.dataset.series)")) for chart in page.locator(DRAWN).all()
    ]
    assert len(charts) == 4, "quality against latency, and over the cutoffs; each for wide windows and for narrow ones"
    assert charts[1:] == charts[:-1]
    return charts[0]


def test_what_is_pointed_at_or_focused_stands_out_in_every_chart_and_what_is_chosen_stays(
    browser: Browser, path: Path, problems: list[str]
) -> None:
    page = opened_page(browser, path, problems)
    legend = page.locator(".legend button")
    series = page.locator(".legend li").evaluate_all("all => all.map(e => e.dataset.series)")
    assert len(series) == legend.count() == 17
    assert lit(page) == set()
    legend.nth(9).hover()
    assert lit(page) == {series[9]}
    assert page.locator(".charts .chart").first.locator(f"g[data-series='{series[9]}'] .label").is_visible()
    page.mouse.move(0, 0)
    assert lit(page) == set()
    legend.nth(4).focus()
    assert lit(page) == {series[4]}
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert lit(page) == {series[4], series[5]}
    legend.nth(5).blur()
    assert lit(page) == {series[4]}
    assert legend.nth(4).get_attribute("aria-pressed") == "true"
    assert page.locator("#comparison th.lit bdi").first.text_content() == legend.nth(4).text_content()
    page.locator("#comparison tbody:not([hidden]) tr:nth-child(4)").hover()
    assert lit(page) == {series[4], series[2]}, "the legend is in the order of the table"


def test_the_filter_of_the_table_holds_for_the_charts(browser: Browser, path: Path, problems: list[str]) -> None:
    page = opened_page(browser, path, problems)
    page.fill("#filter", "k1=0.8 -b=0.1")
    assert texts_of(page, "#comparison tbody:not([hidden]) tr:not([hidden]) th.name bdi") == texts_of(
        page, ".legend li:not(.filtered)"
    )
    assert page.locator(".legend li:visible").count() == 3
    for chart in page.locator(DRAWN).all():
        assert chart.locator("g[data-series]:not(.filtered)").count() == 3
    page.fill("#filter", "")
    assert page.locator(".legend li:visible").count() == 17


def test_many_series_are_drawn_and_the_foremost_are_named(
    browser: Browser, path: Path, ran: BenchmarkRun, problems: list[str]
) -> None:
    page = opened_page(browser, path, problems)
    chart = page.locator(".chart").first
    assert chart.locator("g[data-series]").count() == 17
    named = chart.locator("g[data-series]:not(.rest)").evaluate_all("all => all.map(e => Number(e.dataset.series))")
    assert 0 in named
    recalls = [result.measures["recall@5"] for result in ran.report.configurations]
    assert recalls.index(max(recalls)) in named
    assert len(named) < 17
    labels = texts_of(page, ".chart:first-of-type g[data-series] .label")
    assert len(set(labels[:17])) == 17, "different names have different labels"


def test_contents_lead_to_every_section(browser: Browser, path: Path, problems: list[str]) -> None:
    page = opened_page(browser, path, problems)
    links = page.locator("nav a")
    assert texts_of(page, "nav a") == texts_of(page, "h2")
    for number in range(links.count()):
        target = links.nth(number).get_attribute("href") or ""
        links.nth(number).click()
        assert page.locator(target).evaluate("e => Math.abs(e.getBoundingClientRect().top) < innerHeight")


def test_the_table_is_kept_as_csv_as_it_is_shown(
    browser: Browser, path: Path, ran: BenchmarkRun, problems: list[str], tmp_path: Path
) -> None:
    page = opened_page(browser, path, problems)
    page.fill("#filter", "k1=1.6")
    from bench.browser import wait_until

    tools = page.locator("section[aria-labelledby=results] .tools")
    with page.expect_download() as saved:
        tools.get_by_role("button", name="CSV").click()
    saved.value.save_as(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = {result.name: result for result in best_first(ran.report) if "k1=1.6" in result.name}
    assert [row["Configuration"] for row in rows] == list(wanted)
    for row in rows:
        result = wanted[row["Configuration"]]
        assert float(row["Recall @5"]) == result.measures["recall@5"]
        assert result.cost is not None
        assert float(row["median ms"]) == result.cost.latency_ms
        assert "MRR @5" not in row, "hidden columns stay out"
    tools.get_by_role("button", name="Copy").click()
    wait_until(page, "document.querySelector('.tools output').value === 'copied'")


def test_cost_is_to_be_seen_or_it_is_said_where_it_is(browser: Browser, path: Path, problems: list[str]) -> None:
    cost = "[...document.querySelectorAll('th.family')].find(e => e.textContent === 'Cost').getBoundingClientRect()"
    wide = opened_page(browser, path, problems)
    assert wide.evaluate(f"{cost}.right") <= 1280
    from bench.browser import wait_until

    narrow = opened_page(browser, path, problems, width=390)
    more = narrow.locator("section[aria-labelledby=results] .more")
    assert "Cost" in more.inner_text()
    more.evaluate("button => button.click()")
    wait_until(narrow, f"{cost}.left < 390")


BROKEN = """() => [...document.querySelectorAll('.name bdi, .facts li, data')].filter(e => e.checkVisibility()).flatMap(one => {
  const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
  const broken = [];
  while (walker.nextNode()) {
    for (const word of walker.currentNode.data.matchAll(/[\\p{L}\\p{N}.,]+/gu)) {
      const range = document.createRange();
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
    }
  }
  return broken;
})"""


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_nothing_is_broken_inside_words_and_numbers_and_nothing_is_wider_than_the_window(
    browser: Browser, path: Path, problems: list[str], width: int
) -> None:
    page = opened_page(browser, path, problems, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BROKEN) == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_axe_finds_nothing(browser: Browser, path: Path, problems: list[str], width: int, dark: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = opened_page(browser, path, problems, width=width, dark=dark)
    page.locator("#explorer-shown .hit summary").first.evaluate("line => line.click()")
    page.locator("#differences").evaluate("box => box.click()")
    page.locator("#configurations ~ details summary").first.evaluate("line => line.click()")
    found = Axe().run(page).response["violations"]
    assert [f"{one['id']}: {node['html'][:150]} {node['failureSummary']}" for one in found for node in one["nodes"][:2]] == []


def test_texts_of_passages_and_queries_run_nothing(browser: Browser, problems: list[str], tmp_path: Path) -> None:
    hostile = f"harmless {ATTACK} <mark>not a mark</mark> <svg onload=alert(1)> \u202e end"
    lists = lists_of({"one": [[("a", 2.0, {})]], "other": [[("b", 1.0, {"s": 1.0})]]}, {"q0": {"a": 1, "gold alone": 1}}, 1)
    lists = replace(lists, passages=dict.fromkeys(["a", "b", "gold alone"], hostile))
    lists.texts[0] = "alert onload script <svg onload=alert(1)> harmless"
    report = report_of(configuration("one", {"recall@5": 0.4}), configuration("other", {"recall@5": 0.2}), k_values=[5])
    write_page(report, tmp_path / "hostile.html", lists)
    page = opened_page(browser, tmp_path / "hostile.html", problems)
    shown = page.locator("#explorer-shown")
    shown.locator("summary").first.click()
    visible = hostile.replace("\u202e", "[U+202E]")
    spans = shared_spans(visible, lists.texts[0], common_words([visible], lists.texts))
    assert shown.locator(".passage").inner_text() == visible
    assert shown.locator(".passage mark").all_inner_texts() == [visible[first:last] for first, last in spans]
    assert spans
    assert page.locator("img").count() == 0
    assert shown.locator("svg, script").count() == 0
    assert shown.locator("mark mark").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_the_first_screen_answers_which_is_best_by_how_much_is_it_real_and_what_does_it_cost(
    browser: Browser, problems: list[str], tmp_path: Path, dark: bool
) -> None:
    report = compared_report()
    write_page(report, tmp_path / "report.html")
    page = opened_alone(browser, tmp_path / "report.html", problems, height=800, dark=dark)
    test = by_figure(report)["", "recall@21", "hybrid"]
    (best,) = [result for result in report.configurations if result.name == "hybrid"]
    assert best.cost is not None
    answers = {
        entry.locator("dt").inner_text(): entry.locator("dd").inner_text().split("\n")
        for entry in page.locator(".answers div").all()
    }
    assert answers["Which is best?"] == ["hybrid", f"Recall @21: {best.measures['recall@21']:.3f}"]
    low, high = test.interval
    assert answers["By how much?"] == [f"{test.difference:+.3f} Recall @21", f"{low:+.3f} to {high:+.3f} over bm25"]
    assert test.p_holm < 0.0005
    assert answers["Is it real?"] == [
        "yes: p <0.001",
        "corrected for 3 comparisons",
        f"{test.wins} queries won, 0 tied, 0 lost",
    ]
    assert answers["What does it cost?"][:2] == [f"{best.cost.latency_ms:.2f} ms per query", "bm25: 5.00 ms"]
    assert page.locator("#finding").inner_text() == headline(report)
    for shown in (page.locator("#finding"), page.locator("header .chart.wide"), *page.locator(".answers div").all()):
        box = shown.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 800, "without scrolling"
    assert not page.locator("#tested p").first.is_visible(), "statistics are folded"


def test_what_may_be_chance_is_not_called_real(browser: Browser, problems: list[str], tmp_path: Path) -> None:
    write_page(compared_report(families=4), tmp_path / "report.html")
    page = opened_alone(browser, tmp_path / "report.html", problems)
    assert page.locator(".answers div", has_text="Is it real?").locator("b").inner_text().startswith("it may be chance: p = ")


def taken(page: Page, figure: str, kind: str, folder: Path) -> Path:
    with page.expect_download() as saved:
        page.locator(f"{figure} .take button", has_text=kind).click()
    target = folder / saved.value.suggested_filename
    saved.value.save_as(target)
    return target


@pytest.mark.parametrize("figure", ["header .drawing", "#charts ~ .charts .drawing", "#explorer-charts .drawing:last-child"])
def test_a_chart_is_taken_as_svg_and_png_in_light_colours(
    browser: Browser, path: Path, problems: list[str], tmp_path: Path, figure: str
) -> None:
    light, dark = (opened_page(browser, path, problems, dark=dark) for dark in (False, True))
    for page, folder in ((light, "light"), (dark, "dark")):
        (tmp_path / folder).mkdir()
        for kind in ("SVG", "PNG"):
            taken(page, figure, kind, tmp_path / folder)
    (svg,), (png,) = ([*(tmp_path / "light").glob(f"*.{kind}")] for kind in ("svg", "png"))
    assert (tmp_path / "dark" / svg.name).read_text() == svg.read_text()
    root = ElementTree.fromstring(svg.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert not any("class" in part.attrib or "style" in part.attrib for part in root.iter()), "it stands without a style sheet"
    shown = light.locator(f"{figure} .chart:visible").first
    texts = shown.locator("text:visible").all_text_contents()
    assert [part.text for part in root.iter() if part.tag.endswith("text")] == texts
    drawn = Image.open(png)
    assert drawn.size == (3 * int(root.attrib["width"]), 3 * int(root.attrib["height"]))
    colours = {colour for _, colour in drawn.convert("RGB").getcolors(1 << 24) or []}
    assert (255, 255, 255) in colours
    inks = {part.attrib["fill"] for part in root.iter() if part.tag.endswith("text")}
    assert {tuple(map(int, re.findall(r"\d+", ink))) for ink in inks} <= colours
    assert len(colours) > 100, "and there are shapes"


def test_queries_are_drawn_as_won_and_lost_and_a_click_opens_one(
    browser: Browser, path: Path, ran: BenchmarkRun, problems: list[str]
) -> None:
    page = opened_page(browser, path, problems)
    names = list(ran.per_query)
    assert page.locator("#explorer-one").evaluate("e => e.selectedOptions[0].label") == ran.report.baseline
    best = next(result.name for result in best_first(ran.report) if result.name != ran.report.baseline)
    assert page.locator("#explorer-other").evaluate("e => e.selectedOptions[0].label") == best
    page.select_option("#explorer-other", label=names[1])
    page.select_option("#explorer-measure", label="recall@2")
    before, after = (ran.per_query[name]["recall@2"] for name in (names[0], names[1]))
    gains = (after - before).round(4)
    said = f"{(gains > 0).sum()} won, {(gains == 0).sum()} tied, {(gains < 0).sum()} lost"
    bars, scatter = page.locator("#explorer-charts svg").all()
    assert said in (bars.get_attribute("aria-label") or "")
    for kind, count in (("better", (gains > 0).sum()), ("worse", (gains < 0).sum())):
        assert (bars.locator(f".bars.{kind}").get_attribute("d") or "").count("M") == count
    piles = {tuple(pair) for pair in zip(before.round(4).tolist(), after.round(4).tolist(), strict=True)}
    assert scatter.locator("circle").count() == len(piles)
    (lost, worst), *_ = sorted(zip(gains.tolist(), ran.query_ids, strict=True))
    bars.scroll_into_view_if_needed()
    box = bars.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 408 / 420, box["y"] + box["height"] / 2)
    opened_query = page.locator("#explorer-shown .facts bdi").first.inner_text()
    assert gains[ran.query_ids.index(opened_query)] == lost, f"the last bar is as low as that of {worst}"


def test_pairs_are_shown_in_any_usual_measure_and_long_tables_are_opened(
    browser: Browser, path: Path, ran: BenchmarkRun, problems: list[str]
) -> None:
    page = opened_page(browser, path, problems)
    pairs = page.locator("#all-pairs tbody:visible")
    assert pairs.count() == 1
    assert pairs.locator("th").count() == 10
    page.select_option("#pairs-measure", label="nDCG @5")
    assert pairs.get_attribute("data-measure") == "ndcg@5"
    rows = page.locator("#verdicts tbody:visible tr:visible th.name")
    assert rows.count() == 10
    tall = page.evaluate("document.documentElement.scrollHeight")
    more = page.locator("section[aria-labelledby=significance] button.all")
    assert more.get_attribute("aria-expanded") == "false"
    more.click()
    assert rows.count() == len(ran.report.configurations) - 1
    assert more.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.documentElement.scrollHeight") > tall


def test_the_axes_of_a_grid_are_columns_where_there_is_room_and_names_where_there_is_none(
    browser: Browser, path: Path, ran: BenchmarkRun, problems: list[str]
) -> None:
    wide, narrow = opened_page(browser, path, problems), opened_page(browser, path, problems, width=390)
    heads = "#comparison thead tr:first-child th:visible"
    assert texts_of(wide, heads)[1:2] == ["b"]
    assert "b" not in texts_of(narrow, heads)
    row = wide.locator("#comparison tbody:visible tr", has_text="k1=1.6, b=0.7").first
    assert row.locator("th .part").inner_text() == "1.6"
    assert row.locator("td.axis").inner_text() == "0.7"
    name = "lexical_with_the_usual_stemmer/k1=1.6, b=0.7"
    assert narrow.locator("#comparison tbody:visible th bdi:visible", has_text=name).count() == 1
    wide.locator("#comparison thead th.axis button").click()
    order = wide.locator("#comparison tbody:visible td.axis").all_inner_texts()
    assert order == sorted(order)
