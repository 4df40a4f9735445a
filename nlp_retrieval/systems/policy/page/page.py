"""A study as one HTML page that needs no network: an overview, every answer with its reasons, and what changed between plans.

What documents say is escaped, and the content security policy of the page allows its own style sheet and script alone. All
stands in the HTML; the script opens what is linked to and hides what a choice leaves out.
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
        SourceError: a file of answers is gone.
    """
    return rendered(
        "policy.html",
        _FILES,
        view=study_view(report, study),
        style=asset("report.css") + asset("passages.css") + asset("policy.css", _FILES),
        script=asset("policy.js", _FILES),
    )


def write_study_page(report: StudyReport, study: PolicyStudy, path: str | Path) -> None:
    """Write the page; whoever reads the path finds the old page or the whole new one.

    Args:
        report: of a run.
        study: that was run, with its index open.
        path: the file to write. Its folder is made where it is missing.

    Raises:
        SourceError: a file of answers is gone.
        OutputError: the folder or the file cannot be written.
    """
    write_output(Path(path), render_study(report, study).encode())
