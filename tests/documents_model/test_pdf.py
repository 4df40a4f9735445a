"""PDFs to text: good ones, and those that are damaged, encrypted or made to do harm."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from nlp_retrieval.documents import Document, read_document
from nlp_retrieval.documents.pdf import read_pdf
from nlp_retrieval.documents.reading import _environment, read_in_child
from nlp_retrieval.errors import SourceError

from .pdfs import bomb, content, encrypted, pdf_of

GOOD = pdf_of(
    content("Mean rainfall rose by 12 percent in all of the exam-", "ple regions."), content("The second page."), title="Rain"
)
TEXT = "Mean rainfall rose by 12 percent in all of the example regions.\n\nThe second page."


def error_of(data: bytes) -> str:
    with pytest.raises(SourceError) as caught:
        read_pdf(data, "a.pdf")
    return str(caught.value)


def test_title_and_pages_are_read_in_a_child_process() -> None:
    read = read_document(GOOD, "rain.bin")
    assert (read.title, read.text, read.removed, read.notes) == ("Rain", TEXT, Counter(), [])


def test_an_encrypted_pdf_is_read_if_everybody_may_open_it_and_else_an_error() -> None:
    assert read_pdf(encrypted(GOOD, ""), "a.pdf").text == TEXT
    assert error_of(encrypted(GOOD, "secret")) == "a.pdf: the PDF is encrypted; save it without a password"


def test_a_pdf_whose_bytes_were_changed_is_an_error_or_read() -> None:
    for place in range(9, len(GOOD), 7):
        damaged = GOOD[:place] + b"\xff\x00/" + GOOD[place + 3 :]
        try:
            assert read_pdf(damaged, "a.pdf").text
        except SourceError as error:
            assert str(error).startswith("a.pdf: ")  # noqa: PT017 -- either is right


def test_a_scan_is_an_error_that_says_what_to_do() -> None:
    assert error_of(pdf_of(b"0 0 10 10 re f")) == (
        "a.pdf: no text on page 1; recognise the text of scans first (ocrmypdf in.pdf out.pdf)"
    )


def test_two_hundred_mebibytes_of_zeros_are_an_error() -> None:
    with pytest.raises(SourceError, match=r"^bomb\.pdf: a part of the PDF unpacks to far more than the text of a document"):
        read_document(pdf_of(bomb(200), filtered="FlateDecode"), "bomb.pdf")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (
            "The first paragraph of this page is long enough to be bro-|ken into lines, and it ends|with a stop.|"
            "The second  paragraph follows without an empty line, and|runs on.| |The third one stands alone",
            "The first paragraph of this page is long enough to be broken into lines, and it ends with a stop.\n\n"
            "The second paragraph follows without an empty line, and runs on.\n\nThe third one stands alone",
        ),
        ("Seen in 2010-|2020 and anti-|EU law, Vor- |und Nachteile", "Seen in 2010-2020 and anti-EU law, Vor- und Nachteile"),
        ("It is on https://a.example/one/|two for all.", "It is on https://a.example/one/two for all."),
        ("It is on https://a.example/one|2020 was wet.", "It is on https://a.example/one 2020 was wet."),
    ],
)
def test_the_lines_of_a_page_become_paragraphs(lines: str, text: str) -> None:
    assert read_pdf(pdf_of(content(*lines.split("|"))), "a.pdf").text == text


def test_what_counts_the_pages_is_left_out_and_other_numbers_at_their_edge_are_not() -> None:
    values = {"rain": 2019, "snow": 1987, "hail": 12}
    pages = [
        content(f"Journal of Rain {number}", f"The mean of {kind} in", f"the north for {kind} was", f"of {kind}", str(value))
        for number, (kind, value) in enumerate(values.items(), 411)
    ]
    texts = [f"The mean of {kind} in the north for {kind} was of {kind} {value}" for kind, value in values.items()]
    assert read_pdf(pdf_of(*pages), "a.pdf").text == "\n\n".join(texts)


def test_the_child_sees_no_key_of_a_service_and_no_module_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    for module in ("json.py", "pypdf.py", "lxml.py"):
        (tmp_path / module).write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert "OPENAI_API_KEY" not in _environment()
    assert read_in_child("pdf", GOOD, "rain.pdf", Document).text == TEXT


def test_the_child_limits_its_memory_time_and_output_before_it_reads() -> None:
    script = (
        "import resource, json; from nlp_retrieval.documents.reading import _limit; _limit();"
        "limits = [getattr(resource, 'RLIMIT_' + name) for name in ('AS', 'CPU', 'FSIZE', 'CORE')];"
        "print(json.dumps([resource.getrlimit(limit)[0] for limit in limits]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    memory, seconds, output, core = json.loads(done.stdout)
    assert (memory, seconds, output, core) == (2 * 2**30, 61, 100 * 2**20, 0)
