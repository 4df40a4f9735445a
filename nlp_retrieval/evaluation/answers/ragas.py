"""Answers for RAGAS: one JSON line per question, with the fields of its ``SingleTurnSample``.

RAGAS 0.2 and later reads such a file with ``EvaluationDataset.from_jsonl``. It has no field for ids and citations.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from nlp_retrieval.core.answer import Answer
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.errors import QueryError
from nlp_retrieval.evaluation.answers.gold import GoldAnswer

__all__ = ["ragas_lines"]


def ragas_lines(
    questions: Sequence[str],
    passages: Sequence[Sequence[RetrievalResult]],
    answers: Sequence[Answer],
    gold: Sequence[GoldAnswer] = (),
) -> bytes:
    """Return the content of a JSONL file for RAGAS.

    Args:
        questions: what was asked.
        passages: what the answerer read for each, best first.
        answers: one per question; without text where there is none.
        gold: the right answers, the first text of each as the reference; empty where they are not known.

    Raises:
        QueryError: there is not one of each for every question.
    """
    counts = {len(questions), len(passages), len(answers), len(gold) if gold else len(questions)}
    if len(counts) != 1:
        raise QueryError(
            f"{len(questions)} questions, {len(passages)} lists of passages, {len(answers)} answers and {len(gold)} right "
            "answers; give one of each for every question"
        )
    rows: list[dict[str, JsonValue]] = [
        {"user_input": question, "retrieved_contexts": [result.item.text for result in found], "response": answer.text}
        for question, found, answer in zip(questions, passages, answers, strict=True)
    ]
    for row, right in zip(rows, gold, strict=False):
        row["reference"] = next(iter(right.answers), "")
    return "".join(json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n" for row in rows).encode()
