"""What a run of a study did, and where its files are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nlp_retrieval.errors import SourceError
from nlp_retrieval.pipelines.policy.answers import read_answers
from nlp_retrieval.pipelines.policy.schema import AnswerFile

__all__ = ["StudyReport"]


@dataclass(frozen=True)
class StudyReport:
    """A finished run of a study.

    Args:
        output: the folder.
        files: the file of each subject, by name.
        questions: the numbers that were asked.
        answered: subjects that were asked now.
        kept: subjects whose answers were there already, from the same index, profile and settings.
        replaced: subjects, among those asked, whose file held answers of other settings, or was damaged.
        seconds: the run took.
    """

    output: Path
    files: dict[str, Path]
    questions: tuple[int, ...]
    answered: tuple[str, ...]
    kept: tuple[str, ...]
    replaced: tuple[str, ...]
    seconds: float

    def answers(self) -> Iterator[AnswerFile]:
        """Yield the answers of each subject, from its file.

        Raises:
            SourceError: a file was removed or damaged since.
        """
        for path in self.files.values():
            answers = read_answers(path)
            if answers is None:
                raise SourceError(f"{path} holds no answers any more; run the study again")
            yield AnswerFile.model_validate(answers)
