"""The form of a file of answers, which ``docs/policy-answers.schema.json`` gives as a JSON schema."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

__all__ = [
    "AnswerChunk",
    "AnswerFile",
    "AnswerList",
    "AnswerMetadata",
    "ChainStep",
    "ChunkMatch",
    "QuestionAnswer",
    "RelationChain",
]

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
    chunk_count: Annotated[int, Field(ge=0)] | None = None
    top_k_chunks: list[AnswerChunk] | None = None
    vector: AnswerList | None = None
    hop: AnswerList | None = None

    def lists(self, retrieval_method: str) -> dict[str, list[AnswerChunk]]:
        """Return the passages by method.

        Args:
            retrieval_method: of the file, which names the method where there is one.
        """
        if self.top_k_chunks is not None:
            return {retrieval_method: self.top_k_chunks}
        named = {"vector_similarity": self.vector, "graph_hop": self.hop}
        return {name: found.top_k_chunks for name, found in named.items() if found is not None}


class AnswerMetadata(BaseModel):
    """Subject, date and settings. The subject is also under the profile's own name for it, such as ``country``."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    timestamp: str
    total_questions: Annotated[int, Field(ge=0)]
    retrieval_method: str
    subject: str
    subject_field: str
    profile: str
    passages: Annotated[int, Field(ge=0)]
    top_k: Annotated[int, Field(ge=1)]
    min_similarity: _Score | None
    n_per_document: int | None
    keywords: bool
    where: dict[str, Any] | None
    fingerprint: str


class AnswerFile(BaseModel):
    """All answers about one subject."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, title="Answers of a policy study about one subject")

    metadata: AnswerMetadata
    questions: dict[Annotated[str, Field(pattern=r"^question_\d+$")], QuestionAnswer]
