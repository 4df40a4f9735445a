"""Citations found in reports: ``python -m bench.evidence.citations DATA`` writes ``bench/EVIDENCE_REPORTS.md``.

DATA is a folder of reports in Markdown, of some of which citations were counted by hand (``citations.json``). Ten short papers
in ten styles of citing (``papers.txt``; "?" is a work that its list lacks) are made with real writers: python-docx, a browser
that prints, and text.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import docx

from bench.common import arguments
from bench.writing import page, table
from nlp_retrieval.systems.evidence.citations.formats import read_bibliography_file, read_report_file
from nlp_retrieval.systems.evidence.citations.report import CitedReport, read_report

_HERE = Path(__file__).parent
_PAGE = """# Citations found in reports

`python -m bench.evidence.citations DATA` wrote this page on $date. A citation is one mark or link, in the text, for one
work. *Found* are those that the reader gives with the right address (or, for a mark without a reference, with none);
*too many* are others that it gives. The rules were chosen on one half of the reports and of the styles, and judged on
the other. The first run found .816 of the citations in the styles it was judged on, and .939 of what it gave was right;
then faults in both halves were mended, so that the second half is no longer unseen.

## $n_reports reports of deep-research tools

Counted by hand. Those that cite nothing name companies, years and figures in brackets, which are no citations.

$reports

All $n_all reports in the folder: $n_citations citations, $n_missing of them marks without a reference; read in $seconds
s.

## Ten styles

Short invented papers with five works each, written by python-docx, a browser that prints to PDF, or as text. Each cites
one work that its list lacks, which must be found as a mark without a reference.

$styles

## Sums

$sums
"""


class Found(NamedTuple):
    """Citations of one report: by hand, found with the right address, and found beyond these."""

    name: str
    half: str
    counted: int
    found: int
    too_many: int

    @classmethod
    def of(cls, name: str, half: str, by_hand: Counter[str], found: Counter[str]) -> Found:
        right = (by_hand & found).total()
        return cls(name, half, by_hand.total(), right, found.total() - right)


def main(data: Path) -> None:
    """Measure, and write the page."""
    truth = json.loads((_HERE / "citations.json").read_text())
    begin = time.perf_counter()
    read = {path.name: read_report(read_report_file(path)) for path in sorted(data.glob("*.md"))}
    seconds = time.perf_counter() - begin
    reports = [_counted(name, entry, read[name]) for name, entry in truth.items() if name in read]
    styles = _styles()
    values = {
        "n_reports": len(reports),
        "reports": _table("report", reports),
        "styles": _table("style", styles),
        "sums": _sums({"reports": reports, "styles": styles}),
        "n_all": len(read),
        "n_citations": f"{sum(len(report.citations) for report in read.values()):,}",
        "n_missing": sum(len(report.missing) for report in read.values()),
        "seconds": f"{seconds:.1f}",
    }
    (_HERE.parent / "EVIDENCE_REPORTS.md").write_text(page(_PAGE, **values))


def _counted(name: str, entry: dict[str, int | str], report: CitedReport) -> Found:
    """Compare a report with the numbers counted in it: citations with an address, and marks without a reference."""
    by_hand = Counter(address=int(entry["with_address"]), none=int(entry["without"]))
    found = Counter("address" if citation.url else "none" for citation in report.citations)
    return Found.of(Path(name).stem, str(entry["half"]), by_hand, found)


def _styles() -> list[Found]:
    """Write each paper as its style is written, and read it."""
    papers = re.split(r"^=== (.*)\n", (_HERE / "papers.txt").read_text("utf-8"), flags=re.MULTILINE)[1:]
    texts = dict(zip(papers[::2], papers[1::2], strict=True))
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for about, text in texts.items():
            if " | " not in about:
                continue
            style, half, suffix, cited = about.split(" | ")
            path, list_of_works = Path(folder) / f"paper.{suffix}", Path(folder) / "paper.bib"
            {"docx": _write_docx, "pdf": _print}.get(suffix, lambda text, path: path.write_text(text))(text, path)
            list_of_works.write_text(texts.get(f"bibliography of {style}", ""))
            works = read_bibliography_file(list_of_works) if list_of_works.stat().st_size else []
            report = read_report(read_report_file(path), works)
            by_hand = Counter("" if key == "?" else f"https://doi.org/10.5555/tide.{key}" for key in cited.split())
            made.append(Found.of(f"{style} ({suffix})", half, by_hand, Counter(citation.url for citation in report.citations)))
    return made


def _write_docx(text: str, path: Path) -> None:
    document = docx.Document()
    for block in text.strip().split("\n\n"):
        if block.startswith("# "):
            document.add_heading(block[2:], 1)
        else:
            document.add_paragraph(block.replace("\n", " "))
    document.save(str(path))


def _print(text: str, path: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        sheet = browser.new_page()
        sheet.set_content(text)
        sheet.pdf(path=str(path), format="A5")
        browser.close()


def _table(first: str, rows: Sequence[Found]) -> str:
    return table([first, "half", "by hand", "found", "too many"], {row.name: [row.half, *map(str, row[2:])] for row in rows})


def _sums(groups: dict[str, Sequence[Found]]) -> str:
    rows: dict[str, list[str]] = {}
    for name, found in groups.items():
        for half in ("chosen on", "judged on"):
            in_half = [row for row in found if row.half == half]
            counted, right = sum(row.counted for row in in_half), sum(row.found for row in in_half)
            more = sum(row.too_many for row in in_half)
            shares = [f"{right / max(whole, 1):.3f}" for whole in (counted, right + more)]
            rows[f"{name}, {half}"] = [*map(str, (counted, right, more)), *shares]
    return table(["", "by hand", "found", "too many", "recall", "precision"], rows)


if __name__ == "__main__":
    main(Path(*arguments(__doc__, 1)))
