"""Report of a run of a study: its counts and its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.policy.answers import read_answers
from nlp_retrieval.systems.policy.schema import AnswerFile

__all__ = ["StudyReport"]


@dataclass(frozen=True)
class StudyReport:
    """A finished run of a study.

    Args:
        output: the folder.
        files: the file of each subject of the run, by name.
        present: these, and those of earlier runs over the same index with the same profile and settings.
        questions: numbers of the questions of the run.
        answered: subjects answered in this run.
        kept: subjects with existing answers from the same index, profile and settings.
        replaced: subjects of the run whose file held answers of other settings, or was damaged.
        seconds: duration of the run.
    """

    output: Path
    files: dict[str, Path]
    present: dict[str, Path]
    questions: tuple[int, ...]
    answered: tuple[str, ...]
    kept: tuple[str, ...]
    replaced: tuple[str, ...]
    seconds: float

    def answers(self) -> Iterator[AnswerFile]:
        """Yield the answers of each subject of the run, from its file.

        Raises:
            SourceError: a file was removed or damaged since.
        """
        return self._read(self.files)

    def everything(self) -> Iterator[AnswerFile]:
        """Yield the answers of all subjects of the study, from this and earlier runs.

        Raises:
            SourceError: a file was removed or damaged since.
        """
        return self._read(self.present)

    @staticmethod
    def _read(files: dict[str, Path]) -> Iterator[AnswerFile]:
        for path in files.values():
            answers = read_answers(path)
            if answers is None:
                raise SourceError(f"{path} holds no answers any more; run the study again")
            yield AnswerFile.model_validate(answers)
