"""A made-up report about a town's tram, and what an audit of it found."""

from __future__ import annotations

from typing import Any

from nlp_retrieval.documents import Reference
from nlp_retrieval.systems.evidence.audit import AuditRow, CitationAudit, Review
from nlp_retrieval.systems.evidence.citations.report import Citation, CitedReport, ReportSentence, read_report
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage

REPORT = """# The tram of Altbrunn

The first line opened on 4 May 1911 between the harbour and the market [1]. It carried 2.4 million passengers in its first
year [1].
The depot was designed by the architect Ida Rehm. [2] Wagons were built in Linz [3, 4].

The line was closed in 1964, when buses replaced it [5]. It was never electrified before 1920 [2]. Tickets cost 10 pfennig
([town archive](https://archive.altbrunn.example/tickets)). The new line of 2003 is 11.2 km long [4].

## Today

- **Passengers:** about 61,000 a day use the network [6].
- **Power:** all of it comes from wind [7].
- The network reached Neustadt in 2019.

Drivers are trained for 14 weeks [3]. A night service runs on Fridays [6]. The bridge at Mühltor dates from 1898.[^bridge]
The council voted 31 to 12 for the eastern extension [9]. Works begin in 2027 [5].

## References

[1] A century on rails. https://museum.altbrunn.example/century
[2] Ida Rehm, works. https://architects.example/rehm
[3] Wagons of the Danube works. https://wagons.example/linz/
[4] Altbrunn transport in figures. https://stats.example/altbrunn?year=2024
[5] The end of the old line. https://gazette.example/1964
[6] Timetable. https://tram.altbrunn.example/timetable
[7] Energy report of the town works
[8] Trams of the world. https://trams.example/

[^bridge]: Bridges of the Brunn. https://bridges.example/muehltor
"""

_FOUND: list[tuple[Any, ...]] = [
    (
        "PASS",
        "",
        0.97,
        "The line from the harbour to the market square was opened on 4 May 1911. ",
        "Crowds filled the quay.",
        "",
        "",
    ),
    (
        "REVIEW",
        "other number",
        0.21,
        "In its first twelve months the line carried 1.4 million passengers. ",
        "The town had expected fewer than a million.",
        "The report says 2.4 million, the source 1.4 million.",
        "",
    ),
    ("PASS", "", 0.91, "Rehm drew the plans of the depot in 1909. ", "Her drawings hang in the town hall.", "", ""),
    (
        "REVIEW",
        "other entity",
        0.18,
        "The wagons for Altbrunn were built in Graz and finished in Linz. ",
        "Forty were delivered.",
        "The report names Linz, the source Graz.",
        "",
    ),
    (
        "REVIEW",
        "another source",
        0.12,
        "The network is 38 km long. ",
        "",
        "Nothing on the wagons stands here.",
        "https://wagons.example/graz",
    ),
    ("PASS", "", 0.88, "The last tram ran on 30 June 1964; buses took its place. ", "Many wept.", "", ""),
    (
        "REVIEW",
        "contradicted",
        0.03,
        "Electric wagons ran from the first day. ",
        "The power station stood behind the depot.",
        "The source says that wagons were electric from the first day.",
        "",
    ),
    ("SOURCE_NOT_INDEXED", "", 0.0, "", "", "", ""),
    ("PASS", "", 0.94, "The line that was opened in 2003 has a length of 11.2 km. ", "It has 22 stops.", "", ""),
    ("PASS", "", 0.82, "On an average day 61,000 people travel with us. ", "Children below six travel free.", "", ""),
    ("REVIEW", "no reference", 0.0, "", "", "The reference has no address, so nothing can be compared.", ""),
    (
        "REVIEW",
        "not found",
        0.31,
        "The works train their own fitters. ",
        "Courses begin in spring.",
        "No passage speaks of drivers.",
        "",
    ),
    ("PASS", "", 0.9, "On Fridays and Saturdays night trams run until four. ", "", "", ""),
    ("SOURCE_NOT_INDEXED", "deleted source", 0.0, "", "", "The source was deleted on 2026-10-02.", ""),
    ("REVIEW", "no reference", 0.0, "", "", "No entry has this mark.", ""),
    ("PASS", "", 0.76, "Works are to begin in 2027. ", "The council has not yet decided on the stops.", "", ""),
]


def tram_audit() -> CitationAudit:
    """What an audit found about each citation."""
    report = read_report(REPORT)
    rows = []
    before = "Altbrunn has had a tram for more than a hundred years. "
    for citation, (status, reason, score, deciding, rest, detail, other) in zip(report.citations, _FOUND, strict=True):
        passage, span = None, (0, 0)
        if deciding:
            content = before + deciding + rest
            span = (len(before), len(before) + len(deciding.rstrip()))
            passage = EvidencePassage(content, citation.url, citation.title, "B", "2026-11-02", 11.2, "a" * 12, 0, len(content))
        rows.append(AuditRow(citation, status, reason, score, passage, span, other, detail))
    return CitationAudit(report, rows)


def attacked_audit(text: str) -> CitationAudit:
    """An audit in which every word that comes from outside is this text."""
    rows: list[AuditRow] = []
    for status, url in (("REVIEW", text), ("PASS", "https://safe.example/" + text), ("SOURCE_NOT_INDEXED", text)):
        citation = Citation(len(rows) + 1, text, text, url, text, 1)
        passage = EvidencePassage(text * 2, text, text, text, text, 1.0, text, 0, 2 * len(text))
        said = Review("rejected", text, text, text)
        rows.append(AuditRow(citation, status, "other number", 0.5, passage, (0, len(text)), text, text, review=said))  # type: ignore[arg-type]
    entry = Reference(text, text, text, 1)
    flow = [ReportSentence(text, 1, "paragraph", 0, (1, 2, 3))]
    citations = [row.citation for row in rows]
    report = CitedReport(text, citations, [], citations[:1], [], sentences=flow, references=[entry], notes=[text])
    return CitationAudit(report, rows)
