"""Output of the commands on a study: messages, and the page next to its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nlp_retrieval.cli import say

if TYPE_CHECKING:
    from nlp_retrieval.systems.policy.report import StudyReport
    from nlp_retrieval.systems.policy.study import PolicyStudy


def tell(report: StudyReport, study: PolicyStudy) -> None:
    """Print the number of new and kept answers, and the location of the files."""
    field = study.profile.subject
    n_questions = len(report.questions)
    asked = f"{len(report.answered):,} of {len(report.files):,} ({field}), {n_questions:,} question{'s' * (n_questions != 1)}"
    say(f"asked {asked} ({report.seconds:.1f} s); {len(report.kept):,} were answered already")
    if report.replaced:
        say(f"note: {_listed(report.replaced)}: answers of another index, profile or setting were replaced")
    say(f"answers: {next(iter(report.files.values())).parent}")


def write_page(report: StudyReport, study: PolicyStudy) -> None:
    """Write the page next to the answers, and print its path."""
    from nlp_retrieval.systems.policy.page.page import write_study_page

    path = report.output / "report.html"
    write_study_page(report, study, path)
    say(f"page: {path}")


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
