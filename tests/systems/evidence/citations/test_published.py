"""References against a server of the test's own, which answers as Crossref documents."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from cli.commands import run

from nlp_retrieval.documents import Reference
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.systems.evidence.citations.published import CheckedReference, check_references
from nlp_retrieval.systems.evidence.web_research.crossref import Crossref
from systems.evidence.commands.world import make_project
from tests.local_server import QuietHandler, serving

DATA = json.loads((Path(__file__).parent / "references.json").read_text())
OTHER_AGENCY = "10.48550/arxiv."


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


class Register:
    """The works of a server like Crossref's, and what it was asked."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.works: list[dict[str, Any]] = DATA["works"]
        self.answers: list[tuple[int, bytes]] = []
        """Answers to send before all others."""

    def answer(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        if self.answers:
            return self.answers.pop(0)
        parts = urlsplit(path)
        if parts.path == "/works":
            query = words(parse_qs(parts.query)["query.bibliographic"][0])
            best = sorted(self.works, key=lambda work: -len(query & words(" ".join(work["title"] + work["subtitle"]))))
            return 200, json.dumps({"status": "ok", "message": {"items": best[:5]}}).encode()
        doi = unquote(parts.path.removeprefix("/works/").removesuffix("/agency")).casefold()
        if parts.path.endswith("/agency"):
            there = {"DOI": doi, "agency": {"id": "datacite", "label": "DataCite"}} if doi.startswith(OTHER_AGENCY) else None
        else:
            there = next((work for work in self.works if work["DOI"].casefold() == doi), None)
        return (200, json.dumps({"status": "ok", "message": there}).encode()) if there else (404, b"Resource not found.")


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known = Register()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            status, body = known.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Handler, threading.Event()) as known.port:
        yield known


def check(register: Register, *references: tuple[str, str]) -> list[CheckedReference]:
    service = Crossref(url=f"http://127.0.0.1:{register.port}", pause=0)
    return check_references([Reference(str(number), *entry, number) for number, entry in enumerate(references, 1)], service)


def test_forty_references_half_of_them_invented(register: Register, subtests: pytest.Subtests) -> None:
    checked = check(register, *((entry["text"], entry["url"]) for entry in DATA["references"]))
    for entry, done in zip(DATA["references"], checked, strict=True):
        with subtests.test(entry["text"]):
            assert done.status == entry["status"], done.detail
    table = Counter((entry["invented"], done.status) for entry, done in zip(DATA["references"], checked, strict=True))
    assert not table[True, "as cited"]
    assert table[False, "differs"] == 0


RETRACTED = [{"DOI": "10.1000/notice", "type": "retraction", "label": "Retraction"}]
DANCE = {"DOI": "10.1000/dance", "title": ["The dance of the honey bees"], "subtitle": [], "author": [{"family": "Frisch"}]}
ENTRY = ("Frisch, K. (1965). The dance of the honey bees. Springer.", "https://doi.org/10.1000/dance")


def found(work: object) -> tuple[int, bytes]:
    return 200, json.dumps({"message": work}).encode()


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ((200, b""), "no work"),
        ((200, b"[" * 100_000), "not JSON"),
        ((200, b'{"message": "hello"}'), '"message"'),
        ((500, b""), "status 500"),
        ((200, b" " * 9_000_000), "larger than"),
    ],
)
def test_no_answer_claims_nothing(register: Register, answer: tuple[int, bytes], detail: str) -> None:
    register.answers = [answer, found({"items": []})]
    (done,) = check(register, ENTRY)
    assert done.status == "not asked"
    assert detail in done.detail
    register.answers = [found(DANCE)]
    assert check(register, ENTRY)[0].status == "as cited"


@pytest.mark.parametrize(
    ("cited", "doi"),
    [
        ("https://www.frontiersin.example/articles/10.1000/dance.2/full", "10.1000/dance.2"),
        ("https://example.org/doi/epdf/10.1000/dance.2.pdf?utm_source=a", "10.1000/dance.2"),
        ("https://example.org/10.1000%2Fdance.2/Abstract/#start", "10.1000/dance.2"),
        ("https://doi.org/10.1000/(SICI)1097-4571(199806)49:8%3C693::AID-ASI4%3E3.0.CO;2-O",) * 2,
    ],
)
def test_the_address_of_a_page_says_the_doi_of_its_work(register: Register, cited: str, doi: str) -> None:
    register.works = [{**DANCE, "DOI": unquote(doi.removeprefix("https://doi.org/"))}]
    (done,) = check(register, (ENTRY[0], cited))
    assert done.status == "as cited", done.detail
    assert len(register.asked) == 1


@pytest.mark.parametrize(
    ("surnames", "named", "status"),
    [
        (["de Wit"], "de Wit, J.", "as cited"),
        (["Lind", "Van der Berg"], "Lind, A., & van der Berg, O.", "as cited"),
        (["de Wit"], "Made with, J.", "differs"),
    ],
)
def test_surnames_of_several_words_are_found(register: Register, surnames: list[str], named: str, status: str) -> None:
    register.works = [{**DANCE, "author": [{"family": surname} for surname in surnames]}]
    (done,) = check(register, (f"{named} (1965). The dance of the honey bees. Springer.", ""))
    assert done.status == status, done.detail


def test_an_answer_is_kept_and_a_busy_server_is_asked_once_more(register: Register) -> None:
    register.answers = [(429, b""), found(DANCE)]
    assert check(register, ENTRY)[0].status == check(register, ENTRY)[0].status == "as cited"
    assert register.asked == ["/works/10.1000%2Fdance"] * 2


def test_after_three_failures_in_a_row_nothing_more_is_sent(register: Register) -> None:
    register.answers = [(500, b"")] * 9
    done = check(register, *[(f"Frisch, K. (1965). The dance of {number} honey bees.", "") for number in range(9)])
    assert {each.status for each in done} == {"not asked"}
    assert len(register.asked) == 3
    assert "3 times in a row" in done[-1].detail


def test_the_public_service_is_never_at_an_address_of_this_machine(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    from nlp_retrieval.systems.evidence.web_research import connections

    monkeypatch.setattr(connections, "resolve_host", lambda host, port: ["127.0.0.1"])
    (done,) = check_references([Reference("1", *ENTRY, 1)], Crossref(pause=0))
    assert done.status == "not asked"
    assert "not on the public internet" in done.detail
    assert not register.asked


def test_an_address_with_a_password_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="password"):
        Crossref(url="https://me:secret@example.org")


def test_an_audit_says_what_the_register_has(register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register.works = [
        DANCE,
        {**DANCE, "DOI": "10.1000/gone", "title": ["Bees that <b>never</b> were"], "updated-by": RETRACTED},
    ]
    make_project(tmp_path)
    (tmp_path / "cited.md").write_text(
        "Bees dance [1]. They never were [2]. They sing [3].\n\n## References\n\n"
        "[1] Frisch, K. The dance of the honey bees. https://doi.org/10.1000/dance\n\n"
        "[2] Frisch, K. Bees that never were. Nature.\n\n"
        "[3] Frisch, K. & <script>alert(1)</script>Singer, B. (2022). The song of the honey bees at night. Science.\n"
    )
    asked = f"crossref:url=http://127.0.0.1:{register.port},pause=0"
    options = ("--resolve", asked, "--json", "a.json", "--html", "a.html", "--fail-on", "not-indexed")
    done = run("evidence", "audit", "project", "cited.md", *options, folder=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Of 3 references 1 retracted, 1 not there and 1 as cited." in done.stdout
    answer = json.loads((tmp_path / "a.json").read_text())["checked"]
    assert [(row["reference"]["mark"], row["status"], (row["work"] or {}).get("doi", "")) for row in answer] == [
        ("1", "as cited", "10.1000/dance"), ("2", "retracted", "10.1000/gone"), ("3", "not there", ""),
    ]  # fmt: skip
    page = (tmp_path / "a.html").read_text()
    assert "<strong>retracted</strong>" in page
    assert "<script>alert" not in page
