"""What the judgements of a project say."""

from __future__ import annotations

from nlp_retrieval.judging.project import JudgingProject


def decided(project: JudgingProject) -> str:
    """Return how many judgements there are, in a sentence.

    Args:
        project: judged in part.
    """
    progress = project.progress("")
    return f"{progress.judged} of {progress.chosen} pairs are judged." if progress.judged else ""
