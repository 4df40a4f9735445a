"""What is expected of an answer, as queries bring it along in their metadata."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from nlp_retrieval.core.answer import Fact
from nlp_retrieval.core.models import Query
from nlp_retrieval.errors import GoldError

__all__ = ["GoldAnswer", "gold_answers"]

ANSWER, FACTS = "answer", "supporting_facts"


class GoldAnswer(BaseModel):
    """The right answer to one question.

    Args:
        query_id: the question.
        answers: texts, each of which is right; none where the question cannot be answered, so that no answer is right.
        facts: the sentences that support it, by title and number from 0; None where they are not known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    query_id: str = Field(min_length=1)
    answers: list[str]
    facts: list[Fact] | None = None


def gold_answers(queries: Sequence[Query]) -> list[GoldAnswer]:
    """Return the right answers in the metadata of queries.

    Args:
        queries: with ``answer``, a text or a list of texts, and perhaps ``supporting_facts``, ``[title, sentence number]``.

    Returns:
        One per query; empty where no query has an answer.

    Raises:
        GoldError: some have an answer or facts and others have none, or one is not of this form.
    """
    answered = [query for query in queries if ANSWER in query.metadata]
    if not answered:
        return []
    for key in (ANSWER, FACTS):
        with_it = sum(key in query.metadata for query in queries)
        if with_it not in (0, len(queries)):
            first = next(query.query_id for query in queries if key not in query.metadata)
            raise GoldError(
                f'{len(queries) - with_it} of {len(queries)} questions have no "{key}" in their metadata (first: {first!r}), '
                "so no mean can be taken; add it, or leave these questions out"
            )
    return [GoldAnswer(query_id=query.query_id, answers=_answers(query), facts=_facts(query)) for query in queries]


def _answers(query: Query) -> list[str]:
    told = query.metadata[ANSWER]
    texts = told if isinstance(told, list) else [told]
    if not all(isinstance(text, str) for text in texts):
        raise GoldError(f'question {query.query_id!r}: "{ANSWER}" is {told!r:.80}; a text is wanted, or a list of texts')
    return [str(text) for text in texts]


def _facts(query: Query) -> list[Fact] | None:
    if FACTS not in query.metadata:
        return None
    told = query.metadata[FACTS]
    facts = [_fact(one) for one in told] if isinstance(told, list) else [None]
    read = [fact for fact in facts if fact is not None]
    if len(read) != len(facts):
        raise GoldError(
            f'question {query.query_id!r}: "{FACTS}" is {told!r:.120}; a list of [title, sentence number from 0] is wanted'
        )
    return read


def _fact(value: JsonValue) -> Fact | None:
    match value:
        case [str(title), int(number)] if not isinstance(number, bool) and number >= 0:
            return title, number
        case _:
            return None
