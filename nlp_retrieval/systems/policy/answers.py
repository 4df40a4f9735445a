"""File of answers about one subject: its form, how it is written and read, and the report of a run.

``docs/policy-answers.schema.json`` gives the form as a JSON schema. A signal that could not be computed is null, never 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from nlp_retrieval import Explanation, RetrievalResult, SearchableItem
from nlp_retrieval.core import read_json_file
from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.policy.values import AnswerValue

_Score = Annotated[float, Field(allow_inf_nan=False)]
_CLOSED = ConfigDict(frozen=True, extra="forbid", strict=True)


class ChunkMatch(BaseModel):
    """Match of a keyword or pattern in the content of a passage; offsets count characters."""

    model_config = _CLOSED

    group: str
    begin: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    text: str


class ChainStep(BaseModel):
    """One relation of a chain, from one passage to another."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    source: str
    target: str
    kind: str
    sentence: str = ""
    mention: str = ""


class RelationChain(BaseModel):
    """Path to a passage: the start of the walk, and the relations from there."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    first: str
    origin: str
    strength: _Score
    steps: list[ChainStep]


class AnswerChunk(BaseModel):
    """A passage that answers a question. A signal that could not be computed is null."""

    model_config = _CLOSED

    id: str
    content: str
    combined_score: _Score
    transformer_similarity: _Score | None
    word2vec_similarity: _Score | None
    regex_score: _Score | None
    fuzzy_score: _Score | None
    score: _Score
    title: str
    document: str
    metadata: dict[str, JsonValue]
    signals: dict[str, _Score]
    matches: list[ChunkMatch]
    chain: RelationChain | None = None


class BestSentence(BaseModel):
    """The sentence that answers a question best, its passage, and what it holds of the kind that the question asks for."""

    model_config = _CLOSED

    id: str
    document: str
    page: int | str | None
    sentence: str
    values: list[AnswerValue]


class AnswerList(BaseModel):
    """The passages that one method found for a question, best first."""

    model_config = _CLOSED

    chunk_count: Annotated[int, Field(ge=0)]
    top_k_chunks: list[AnswerChunk]


class QuestionAnswer(BaseModel):
    """A question with its passages: of one method, or, where both were asked for, of each under its name."""

    model_config = _CLOSED

    question_number: Annotated[int, Field(ge=1)]
    question: str
    retrieval_method: str
    addressed: bool
    addressed_score: _Score
    best: BestSentence | None
    fingerprint: str
    chunk_count: Annotated[int, Field(ge=0)] | None = None
    top_k_chunks: list[AnswerChunk] | None = None
    vector: AnswerList | None = None
    hop: AnswerList | None = None

    def lists(self) -> dict[str, list[AnswerChunk]]:
        """Return the passages by method."""
        if self.top_k_chunks is not None:
            return {self.retrieval_method: self.top_k_chunks}
        answers = {"vector_similarity": self.vector, "graph_hop": self.hop}
        return {name: answer.top_k_chunks for name, answer in answers.items() if answer is not None}


class AnswerMetadata(BaseModel):
    """Subject, date, and settings of the last run. The subject is also under the profile's own name for it: ``country``."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    timestamp: str
    total_questions: Annotated[int, Field(ge=0)]
    retrieval_method: str
    subject: str
    subject_field: str
    profile: str
    passages: Annotated[int, Field(ge=0)]
    editions: int | None
    top_k: Annotated[int, Field(ge=1)]
    min_similarity: _Score | None
    n_per_document: int | None
    keywords: bool
    where: dict[str, Any] | None


class AnswerFile(BaseModel):
    """All answers about one subject."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, title="Answers of a policy study about one subject")

    metadata: AnswerMetadata
    questions: dict[Annotated[str, Field(pattern=r"^question_\d+$")], QuestionAnswer]


Answers = dict[str, Any]
"""A file of answers, as JSON values."""

SIGNAL_FIELDS: dict[str, tuple[str, ...]] = {
    "transformer_similarity": ("multi_signal.transformer", "faiss.score", "pgvector.score"),
    "word2vec_similarity": ("multi_signal.word_vectors",),
    "regex_score": ("multi_signal.patterns",),
    "fuzzy_score": ("multi_signal.fuzzy",),
}
"""Fields of a passage, and the signals that they come from: the first that exists."""

COMBINED = "multi_signal.score"

_DOCUMENT = ("document", "doc_id", "parent_id")
_MOST_BYTES = 2**28
_BEGINNING = 5
"""Words by which a sentence is found that does not stand in its passage as a whole."""


def combined_score(result: RetrievalResult) -> float | None:
    """Return the combined score of all signals, 0..1; None if it was not computed."""
    return result.signals.get(COMBINED)


def named_document(item: SearchableItem) -> str:
    """Return the document that the metadata of a passage name; empty if they name none."""
    return next((str(item.metadata[key]) for key in _DOCUMENT if item.metadata.get(key) is not None), "")


def document_of(item: SearchableItem) -> str:
    """Return the document of a passage; its own id if its metadata do not name one."""
    return named_document(item) or item.item_id


def chunk_of(
    result: RetrievalResult, matches: Iterable[Mapping[str, Any]] = (), explained: Mapping[str, Explanation] | None = None
) -> Answers:
    """Return a result in the form of the file, with matches in its content, and the chain of relations that led to it."""
    item, score = result.item, combined_score(result)
    chunk: Answers = {"id": item.item_id, "content": item.content, "combined_score": result.score if score is None else score}
    for field, keys in SIGNAL_FIELDS.items():
        chunk[field] = next((result.signals[key] for key in keys if key in result.signals), None)
    chunk["score"] = result.score
    chunk["title"] = item.title
    chunk["document"] = document_of(item)
    chunk["metadata"] = {key: value for key, value in item.metadata.items() if key != "title"}
    chunk["signals"] = dict(result.signals)
    chunk["matches"] = [dict(match) for match in matches]
    chains = [explanation.as_dict() for explanation in (explained or {}).values()]
    if chains:
        chunk["chain"] = chains[0]
    return chunk


def page_of(item: SearchableItem, sentence: str = "") -> int | str | None:
    """Return the page of a sentence of a passage, from its metadata ``page`` and ``page_starts``; None if they name none."""
    page: Any = item.metadata.get("page")
    starts: Any = item.metadata.get("page_starts")
    if isinstance(starts, list) and all(isinstance(start, list) and len(start) == 2 for start in starts):
        words = sentence.split()
        begins = (re.search(r"\s+".join(map(re.escape, some)), item.content) for some in (words, words[:_BEGINNING]))
        begin = next((match.start() for match in begins if match), 0)  # a footer inside a sentence is not in what is shown
        page = next((number for number, first in reversed(starts) if isinstance(first, int) and first <= begin), page)
    return page if isinstance(page, int | str) and not isinstance(page, bool) and page != "" else None


def read_answers(path: Path) -> Answers | None:
    """Return the content of a file of answers; None if there is none, or it has another form."""
    try:
        answers = read_json_file(path, max_bytes=_MOST_BYTES)
    except (OSError, ValueError):
        return None
    try:
        AnswerFile.model_validate(answers)
    except ValidationError:
        return None
    valid: Answers = answers
    return valid


def to_json(answers: Answers) -> bytes:
    """Return the bytes of a file of answers."""
    return (json.dumps(answers, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


@dataclass(frozen=True)
class StudyReport:
    """A finished run of a study.

    Args:
        output: the folder.
        files: the file of each subject of the run, by name.
        present: these, and those of earlier runs.
        questions: numbers of the questions of the run.
        answered: subjects answered in this run.
        kept: subjects with existing answers from the same index, profile and settings.
        replaced: subjects of the run of which answers of other settings were replaced.
        seconds: duration of the run.

    Examples:
        >>> report = study.run("first", subjects="Ostland", questions=1)
        >>> report.answered, report.kept
        (('Ostland',), ())
        >>> study.run("first", subjects="Ostland", questions=1).kept  # answered already
        ('Ostland',)
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
        return map(_read, self.files.values())

    def everything(self) -> Iterator[AnswerFile]:
        """Yield the answers of all subjects, from this and earlier runs.

        Raises:
            SourceError: a file was removed or damaged since.
        """
        return map(_read, self.present.values())


def _read(path: Path) -> AnswerFile:
    answers = read_answers(path)
    if answers is None:
        raise SourceError(f"{path} no longer holds answers; run the study again")
    return AnswerFile.model_validate(answers)
