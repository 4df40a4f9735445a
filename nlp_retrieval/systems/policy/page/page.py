"""A study as one HTML page that needs no network: an overview, every answer with its reasons, and the changes between plans.

Text of documents is escaped, and the content security policy of the page allows only its own style sheet and script. The HTML
holds everything; the script opens link targets and hides what a filter excludes.
"""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval.core import write_output
from nlp_retrieval.reports import asset, rendered
from nlp_retrieval.systems.policy.page.view import study_view
from nlp_retrieval.systems.policy.report import StudyReport
from nlp_retrieval.systems.policy.study import PolicyStudy

__all__ = ["render_study", "write_study_page"]

_FILES = Path(__file__).parent / "files"


def render_study(report: StudyReport, study: PolicyStudy) -> str:
    """Return the page.

    Args:
        report: of a run.
        study: that was run, with its index open.

    Raises:
        SourceError: a file of answers is missing.
    """
    return rendered(
        "policy.html",
        _FILES,
        view=study_view(report, study),
        style=asset("report.css") + asset("passages.css") + asset("policy.css", _FILES),
        script=asset("policy.js", _FILES),
    )


def write_study_page(report: StudyReport, study: PolicyStudy, path: str | Path) -> None:
    """Write the page; a reader sees the old page or the complete new one.

    Args:
        report: of a run.
        study: that was run, with its index open.
        path: the file to write. Its folder is created if missing.

    Raises:
        SourceError: a file of answers is missing.
        OutputError: the folder or the file cannot be written.
    """
    write_output(Path(path), render_study(report, study).encode())
