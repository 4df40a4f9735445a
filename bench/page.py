"""The page of a large benchmark: how large it is, how fast it opens, and whether clicking through it tells the truth.

``python -m bench.page [FOLDER]`` makes pages of 30 configurations, 1,000 queries, 21 hits and 6 signals each, with and without
the texts of passages, prints their sizes, and opens them in headless Chromium (Debian's package ``chromium``, driven with
Playwright), where it clicks, types and reads. What the page shows of two lists is compared with
:func:`nlp_retrieval.evaluation.ranking_difference.difference`. Pictures are written to FOLDER.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page

from bench.browser import chromium, opened, wait_for_lists, wait_for_texts, wait_until
from bench.page_data import cut, judged_report, random_lists, sweep_lists
from nlp_retrieval import Gold
from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.ranking_difference import HitDifference, QueryDifference, SignalMove, changed_queries, difference
from nlp_retrieval.evaluation.rankings import ListsBuilder, RunLists
from nlp_retrieval.reports.page.page import LIMIT, write_page


def main(arguments: list[str]) -> int:
    """Measure and click; 1 where something is not as it should be."""
    folder = Path(arguments[0]) if arguments else Path(tempfile.mkdtemp(prefix="page-"))
    folder.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with chromium() as browser:
        sweep = sweep_lists()
        bare = replace(sweep, passages={})
        for name, lists in (("sweep", sweep), ("sweep-without-texts", bare), ("random", random_lists())):
            report, values = judged_report(lists)
            path = (folder / f"{name}.html").absolute()
            begun = time.perf_counter()
            write_page(report, path, lists, values)
            size = path.stat().st_size
            print(f"{name}: {size / 1e6:.2f} MB, written in {time.perf_counter() - begun:.1f} s")
            wrong += [f"{name}: {size} bytes are over {LIMIT}"] if size > LIMIT else []
            wrong += [f"{name}: {one}" for one in clicked(browser, path, lists, folder)]
        wrong += hostile(browser, folder)
    for one in wrong:
        print(f"WRONG: {one}")
    print(f"pictures: {folder}")
    return 1 if wrong else 0


def clicked(browser: Browser, path: Path, lists: RunLists, folder: Path) -> list[str]:
    """Click through the page; return what is wrong."""
    wrong: list[str] = []
    problems: list[str] = []

    def check(right: object, said: str) -> None:
        if not right:
            wrong.append(said)

    names = list(lists.listings)
    opened(browser, "about:blank", problems).close()
    begun = time.perf_counter()
    page = opened(browser, path.as_uri(), problems)
    wait_for_lists(page)
    print(f"{path.stem}: opened, with its lists, in {time.perf_counter() - begun:.2f} s", end="; ")
    wait_for_texts(page)
    print(f"with all texts in {time.perf_counter() - begun:.2f} s")
    depth = int(page.evaluate("[...document.getElementById('explorer-cutoff').options].at(-1).value"))
    print(f"{path.stem}: lists are shown to rank {depth}")
    held = cut(lists, depth)

    _choose(page, "#explorer-other", names[1])
    _choose(page, "#explorer-cutoff", "5")
    _choose(page, "#explorer-measure", "recall@5")
    first = changed_queries(held, names[0], names[1], 5)
    check(_query(page) == first[0].query_id, f"the query that changes most is {first[0].query_id}, not {_query(page)}")
    shown = page.evaluate("[...document.querySelectorAll('#explorer-queries li')].map((e) => e.id.slice(15))")
    check(shown == [row.query_id[1:] for row in first[: len(shown)]], "queries are not in the order of their change")
    _choose(page, "#explorer-cutoff", str(depth))
    _compare(page, held, names[0], names[1], first[0].query_id, depth, check)
    _choose(page, "#explorer-cutoff", "5")

    page.evaluate("document.getElementById('explorer-search').focus()")
    page.keyboard.press("ArrowDown")
    check(_query(page) == first[1].query_id, "an arrow in the search field does not go to the next query")
    page.keyboard.press("PageDown")
    check(_query(page) == first[11].query_id, "page down does not go ten further")
    page.keyboard.insert_text("q777")
    check(page.evaluate("document.querySelectorAll('#explorer-queries li').length") == 1, "typing does not narrow the queries")
    check(_query(page) == "q777", "typing does not choose what is left")
    page.evaluate("document.getElementById('explorer-queries').focus()")
    page.keyboard.press("End")
    check(_query(page) == "q777", "the list does not stop at its end")

    _choose(page, "#explorer-one", names[4])
    _choose(page, "#explorer-other", names[7])
    _choose(page, "#explorer-cutoff", "5")
    _compare(page, held, names[4], names[7], "q777", 5, check)
    page.click("#explorer-swap")
    _compare(page, held, names[7], names[4], "q777", 5, check)

    state = urlencode({"from": names[2], "to": names[9], "query": "q31", "first": depth})
    page.close()
    page = opened(browser, f"{path.as_uri()}#{state}", problems)
    wait_for_lists(page)
    _compare(page, held, names[2], names[9], "q31", depth, check)
    check(page.evaluate("scrollY") > 100, "an address with a query does not lead to it")
    page.evaluate("location.hash = " + repr("#" + urlencode({"from": names[3], "to": names[2], "query": "q5", "first": 5})))
    wait_until(page, "document.querySelector('#explorer-shown .facts li').textContent === 'q5'")
    _compare(page, held, names[3], names[2], "q5", 5, check)
    _choose(page, "#explorer-order", "losses first")
    page.click("#explorer-queries li:first-child")
    check(urlencode({"query": _query(page)}) in page.evaluate("location.hash"), "the address does not hold the query")
    measure = page.evaluate("document.getElementById('explorer-measure').selectedOptions[0].label")
    worst = min(row.gain for row in changed_queries(lists, names[3], names[2], int(measure.removeprefix("recall@"))))
    said = page.evaluate("document.querySelector('#explorer-queries li .change').textContent")
    check(f"{abs(worst):.2f}" in said, f"losses do not come first: {said} and not {worst:.2f}")
    _choose(page, "#explorer-group", "hops=3")
    check("333 of 1,000" in page.evaluate("document.getElementById('explorer-count').textContent"), "groups do not narrow")

    _table(page, names, check)
    _looks(browser, path, folder, state, check)
    check(not problems, f"the console says {problems[:3]}")
    return wrong


def hostile(browser: Browser, folder: Path) -> list[str]:
    """Names that are markup, lists without signals, and a browser that cannot open the data."""
    wrong = []
    attack = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 2'>"
    gold = [Gold(query_id=attack, relevance={attack: 1})]
    builder = ListsBuilder([attack], [attack], [None], [attack], gold, {attack: {attack: 1}}, {attack: attack})
    builder.add_rankings(attack, [[(attack, 2.0), ("b", 1.0)]], {attack: attack})
    builder.add_rankings("other", [[("b", 2.0)]], {"b": attack})
    path = (folder / "hostile.html").absolute()
    lists = builder.built()
    report = BenchmarkReport([], attack, [5], {"": 1}, 2, {})
    write_page(report, path, lists)
    problems: list[str] = []
    page = opened(browser, path.as_uri(), problems)
    wait_for_lists(page)
    if page.evaluate("window.hurt || document.images.length"):
        wrong.append("a name was taken for markup")
    shown = page.evaluate("document.querySelector('#explorer-shown .asked').textContent")
    if shown != attack:
        wrong.append(f"a query's text is shown as {shown!r}")
    if page.evaluate("document.querySelectorAll('.hit details').length"):
        wrong.append("hits without signals open")
    page = opened(browser, path.as_uri(), problems, script="delete window.DecompressionStream")
    wait_until(page, "document.getElementById('explorer-note').textContent.includes('nlp-retrieval diff')")
    if not page.evaluate("document.getElementById('explorer').hidden"):
        wrong.append("a browser that cannot open the lists shows empty ones")
    return [*wrong, *problems]


def _choose(page: Page, selector: str, label: str) -> None:
    page.select_option(selector, label=label)


def _query(page: Page) -> str:
    return str(page.evaluate("document.querySelector('#explorer-shown .facts li').textContent"))


def _table(page: Page, names: list[str], check: Any) -> None:
    """The comparison sorts and filters."""
    order = "[...document.querySelectorAll('#comparison tbody:not([hidden]) th.name bdi')].map((e) => e.textContent)"
    values = (
        "[...document.querySelectorAll('#comparison tbody:not([hidden]) tr')].slice(1)"
        ".map((row) => Number(row.querySelector('td:not([hidden]) data').value))"
    )
    given, found = page.evaluate(order), page.evaluate(values)
    check(found == sorted(found, reverse=True), "the table does not begin with the best")
    page.click("#comparison thead th.main button")
    found = page.evaluate(values)
    check(found == sorted(found), "a click does not turn the order round")
    page.click("#comparison thead th.main button")
    check(page.evaluate(order) == given, "a second click does not bring the given order back")
    page.evaluate("document.getElementById('filter').focus()")
    word = names[-1].split()[-1]
    page.keyboard.insert_text(word)
    visible = page.evaluate(
        "[...document.querySelectorAll('#comparison tbody:not([hidden]) tr:not([hidden]) th.name bdi')].length"
    )
    check(visible == sum(word in name for name in names), f"the filter shows {visible} rows for {word!r}")
    page.evaluate(
        "(() => { const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input')); })()"
    )


def _looks(browser: Browser, path: Path, folder: Path, state: str, check: Any) -> None:
    """Pictures, and nothing wider than the window."""
    for width in (1280, 390):
        for dark in (False, True):
            page = opened(browser, f"{path.as_uri()}#{state}", [], width=width, height=900, dark=dark)
            wait_for_lists(page)
            page.evaluate("document.querySelectorAll('.hit details').forEach((e, i) => { e.open = i === 1; })")
            wide = page.evaluate("document.documentElement.scrollWidth")
            check(wide <= width, f"at {width} pixels the page is {wide} wide")
            name = f"{path.stem}-{width}-{'dark' if dark else 'light'}"
            page.locator("#explorer").screenshot(path=folder / f"{name}.png")
            page.locator("section[aria-labelledby=pairs]").screenshot(path=folder / f"{name}-pairs.png")
            page.close()


def _compare(page: Page, lists: RunLists, one: str, other: str, query: str, k: int, check: Any) -> None:
    """What the page shows of two lists is what the numbers say."""
    found = difference(lists, one, other, query, k)
    for which, hits in enumerate((found.one_list, found.other_list)):
        rows = page.evaluate(
            f"[...document.querySelectorAll('#explorer-shown .lists section:nth-of-type({which + 1}) .hit')].map((hit) =>"
            " [hit.querySelector('.rank').textContent, hit.querySelector('.what bdi').textContent,"
            "  [...hit.querySelectorAll('.tag')].map((tag) => tag.textContent)])"
        )
        expected = [
            [str(hit.other_rank if which else hit.one_rank), hit.item_id, _tags(hit, is_other=bool(which))] for hit in hits
        ]
        check(rows == expected, f"{query}, {one} to {other}, list {which + 1} is {rows}, not {expected}")
    missed = page.evaluate(
        "[...document.querySelectorAll('#explorer-shown .missed bdi:first-of-type')].map((e) => e.textContent)"
    )
    ids = [gold.item_id for gold in found.missed]
    check([one for one in missed if one in lists.item_ids] == ids, f"{query}: missed gold is {missed}, not {ids}")
    _compare_signals(page, found, check)


def _compare_signals(page: Page, found: QueryDifference, check: Any) -> None:
    tables = page.evaluate(
        "(async () => { const all = [...document.querySelectorAll('#explorer-shown .lists section:nth-of-type(2) details')];"
        " all.forEach((one) => { one.open = true; }); await new Promise((done) => setTimeout(done, 100));"
        " return all.map((one) => [...one.querySelectorAll('tbody tr')].slice(1).map((row) =>"
        " [row.querySelector('th').textContent, [...row.querySelectorAll('td')].map((cell) => cell.textContent)])); })()"
    )
    for hit, table in zip(found.other_list, tables, strict=True):
        expected = [[signal.name, _cells(signal)] for signal in hit.signals]
        said = f"{found.query_id}: signals of {hit.item_id} are {table}, not {expected}"
        check(sorted(table) == sorted(expected), said)


def _cells(signal: SignalMove) -> list[str]:
    missing = {"unseen": "not found by it", "absent": "no such signal", "unlisted": "not in this list"}
    cells: list[str] = []
    for value, rank, seen in (
        (signal.one, signal.one_rank, signal.one_seen),
        (signal.other, signal.other_rank, signal.other_seen),
    ):
        cells += [missing[seen]] if value is None else [f"{value:.10g} rank {rank}"]
    if signal.one is None or signal.other is None:
        return [*cells, f"only in {'first' if signal.other is None else 'second'}"]
    up = signal.up or 0
    return [*cells, "same rank" if not up else f"{'↑ up' if up > 0 else '↓ down'} {abs(up)}"]


def _tags(hit: HitDifference, *, is_other: bool) -> list[str]:
    gold = ["★ gold"] if hit.grade else []
    if hit.movement == "entered":
        return [*gold, "+ entered" + (f", from {hit.one_rank}" if hit.one_rank else "")]
    if hit.movement == "left":
        return [*gold, "\N{MINUS SIGN} left" + (f", to {hit.other_rank}" if hit.other_rank else "")]
    if hit.movement == "same":
        return [*gold, "same rank"]
    way = "↑ up" if hit.movement == "up" else "↓ down"
    return [*gold, f"{way} {abs(hit.up or 0)}, {f'from {hit.one_rank}' if is_other else f'to {hit.other_rank}'}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
