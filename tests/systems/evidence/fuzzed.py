"""Targets that read what the web and writers of reports send: pages, answers of servers, rules, and what models say of them."""

from __future__ import annotations

import numpy as np
from fuzz.inputs import a_file, as_text
from fuzz.settings import read_bodies

from nlp_retrieval.documents import clean_text, clean_title, read_document, web_address
from nlp_retrieval.errors import FetchError, ModelError, RetrievalError, SourceError
from nlp_retrieval.systems.evidence.citations.report import read_report
from nlp_retrieval.systems.evidence.service import AuditBody, IndexBody, PassageSearchBody, VerifyBody
from nlp_retrieval.systems.evidence.verifiers.lexical import Calibration
from nlp_retrieval.systems.evidence.web_research.addresses import WebTarget, web_url
from nlp_retrieval.systems.evidence.web_research.searching import BaseWebSearch, WebResult, find_pages, results_in


def cited_report(data: bytes) -> bool:
    """A report in Markdown: citations are numbered, stand on a line that is there, and lead to the web or nowhere."""
    text = as_text(data)
    report = read_report(text)
    n_lines = clean_text(text)[0].count("\n") + 1
    assert [one.number for one in report.citations] == [*range(1, len(report.citations) + 1)]
    for one in [*report.citations, *report.uncited, *report.unused]:
        assert 1 <= one.line <= n_lines
    for url in [one.url for one in (*report.citations, *report.unused)]:
        assert not url or web_address(url)
    assert all(one in report.citations and one.mark and not one.url for one in report.missing)
    assert read_report(text) == report
    return bool(report.citations or report.uncited)


def page(data: bytes) -> bool:
    """A source of each kind: what is read holds nothing unseen, and is read as itself again."""
    taken = False
    for name in ("page.html", "page.md", "page.txt"):
        try:
            read = read_document(data, name)
        except SourceError:
            continue
        taken = True
        assert read.text == read.text.strip() != ""
        assert clean_text(read.text)[0] == read.text
        assert clean_title(read.title) == read.title
        assert read_document(read.text.encode(), "again.txt").text == read.text
    return taken


class _Found(BaseWebSearch):
    """A search engine that found what it was given."""

    name = "found"

    def __init__(self) -> None:
        self.results: list[WebResult] = []

    def search(self, query: str, k: int = 10) -> list[WebResult]:
        return self.results


def searxng(data: bytes) -> bool:
    """The answer of a search engine: addresses of the web, each once, with texts that hold nothing unseen."""
    engine = _Found()
    try:
        engine.results = results_in(data, "the search engine")
    except FetchError:
        return False
    found = find_pages(engine, "a query", 50)
    assert len({web_url(one.url) for one in found}) == len(found)
    for one in found:
        assert web_url(one.url) is not None
        assert "\n" not in one.title
        assert clean_text(one.title)[0] == one.title
        (one.url + one.title).encode()
    return bool(found)


def web_target(data: bytes) -> bool:
    """An address, and where it redirects to: what is asked for can be sent as it stands, and is read as itself again."""
    first, _, location = as_text(data).partition("\n")
    try:
        target = WebTarget.of(first)
        asked = [target, target.redirected(location)]
    except RetrievalError:
        return False
    for one in asked:
        assert one.scheme in ("http", "https")
        assert not any(ord(char) <= 32 or ord(char) > 126 for char in one.authority + one.path)
        assert WebTarget.of(one.url) == one
    return True


def calibration(data: bytes) -> bool:
    """A calibration: whatever the signals, it gives probabilities."""
    try:
        read = Calibration.read(a_file("calibration.json", data))
    except ModelError:
        return False
    for value in (0.0, 1.0, -1e6):
        given = read.probabilities([dict.fromkeys(read.signals, value)])
        assert given.shape == (1, 3)
        assert np.isfinite(given).all()
        assert abs(given.sum() - 1) < 1e-6
    return True


def project_bodies(data: bytes) -> bool:
    """What a service of a project is asked."""
    return read_bodies(data, [IndexBody, PassageSearchBody, VerifyBody, AuditBody])


OF_EVIDENCE = [cited_report, page, searxng, web_target, calibration, project_bodies]
