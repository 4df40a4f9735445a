from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

from nlp_retrieval import Bm25Retriever, OverlapReranker
from nlp_retrieval.benchmarks.cost import amount
from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.reports.page.page import render_page
from reports.report_data import configuration, report_of, usual_report

VOID = {"meta", "input", "br", "path", "rect", "circle"}
ATTACK = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


class Page(HTMLParser):
    """What a browser would see: elements in order, the text of each, and whether they close in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[tuple[str, str]] = []
        self.feed(page.replace("<wbr>", ""))  # where a name may break
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"repeated attribute on {tag}"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> closes nothing that is open"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def texts(self, tag: str) -> list[str]:
        return [text for within, text in self.text if within == tag]


def policy(page: Page) -> str:
    (found,) = [meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    return found or ""


def test_every_figure_of_the_report_stands_in_the_page() -> None:
    report = usual_report()
    page = Page(render_page(report))
    shown = {text.strip() for text in (*page.texts("td"), *page.texts("b"))}
    for result in report.configurations:
        for measures in (result.measures, *result.groups.values()):
            assert {f"{value:.3f}" for value in measures.values()} <= shown
        cost = result.cost
        figures = (cost.latency_ms, cost.latency_p95_ms, cost.index_seconds, cost.index_bytes / 1e6)
        assert {amount(value) for value in (*figures, *cost.stage_ms.values())} <= shown


def test_the_page_is_well_formed_and_says_what_was_compared() -> None:
    source = render_page(usual_report())
    page = Page(source)
    assert source.startswith("<!DOCTYPE html>")
    assert not page.open
    facts = page.texts("li")
    assert facts[:4] == ["3 configurations", "1,200 queries", "32,000 items in the corpus", "cutoffs 5, 10 and 21"]
    assert "2026-11-21" in facts
    of_files = replace(usual_report(), manifest={"compared": {}, "depth": 3})
    assert Page(render_page(of_files)).texts("li")[2:4] == ["32,000 items in the lists and judgements", "cutoffs 5, 10 and 21"]
    for depths, said in (([3, 3], True), ([3, 9], False), ([], False)):
        compared = {"depth": 3, "compared": {str(number): {"depth": depth} for number, depth in enumerate(depths)}}
        assert ("the first 3 hits of each query" in render_page(replace(usual_report(), manifest=compared))) == said
    identifiers = [a["id"] for _, a in page.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    referred = {name for _, a in page.elements for name in (a.get("aria-labelledby") or "").split()}
    assert referred <= set(identifiers)


def test_policy_allows_exactly_the_style_and_the_script_of_the_page() -> None:
    source = render_page(usual_report())
    page = Page(source)
    (style,), (script,) = page.texts("style"), page.texts("script")
    for directive, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy(page)
    assert policy(page).startswith("default-src 'none';")
    assert "unsafe" not in policy(page)
    assert not any("style" in a or any(key.startswith("on") for key in a) for _, a in page.elements)


def attacked_report() -> BenchmarkReport:
    result = configuration(ATTACK, {f"{ATTACK}@5": 0.5, "recall@5": 0.4}, {ATTACK: {"recall@5": 0.3}})
    stages = replace(result.cost, stage_ms={ATTACK: 1.0})
    result = replace(result, config={ATTACK: [ATTACK]}, fingerprint=ATTACK, cost=stages)
    report = report_of(result, configuration("plain", {"recall@5": 0.2}), k_values=[5])
    return replace(report, manifest={"finished": ATTACK, ATTACK: {"seed": ATTACK}}, files={ATTACK: ATTACK})


def test_markup_in_names_and_values_stays_text() -> None:
    plain, attacked = Page(render_page(usual_report())), Page(render_page(attacked_report()))
    assert len(attacked.of("script")) == 1
    assert not attacked.of("img")
    assert attacked.texts("script") == plain.texts("script")
    assert not attacked.open
    assert ATTACK in attacked.texts("bdi")
    assert ATTACK in attacked.texts("code")
    assert not any(key.startswith("on") for _, a in attacked.elements for key in a)


def test_each_searcher_is_drawn_and_what_no_searcher_has_written_is_not() -> None:
    report = usual_report()
    first, *rest = report.configurations
    searcher = Bm25Retriever() % 50 >> OverlapReranker() % 10
    page = render_page(replace(report, configurations=[replace(first, config=searcher.config), *rest]))
    assert page.count("first 10</text>") == 1
    for config in ({"name": "searcher", "retrievers": 3}, {"name": "searcher", "retrievers": [None]}):
        assert ">first 10<" not in render_page(replace(report, configurations=[replace(first, config=config), *rest]))


def test_the_page_refers_to_nothing_outside_itself() -> None:
    for report in (usual_report(), attacked_report()):
        source = render_page(report)
        assert not re.search(r"https?://|@import|url\(", source)
        page = Page(source)
        assert not any({"src", "srcset", "data", "action"} & a.keys() for _, a in page.elements)
        assert all((a["href"] or "").startswith("#") for _, a in page.elements if "href" in a)
        assert not {"link", "iframe", "object", "base", "form"} & {tag for tag, _ in page.elements}
