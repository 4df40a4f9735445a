"""Answering as a stage: answers to the same questions and passages are reused, in this run and later ones.

A result depends on the answerer, the questions, and the passages that it reads, with everything in the items. If it failed on a
question, the result is used in this run alone, and the next run asks again.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from pydantic import ValidationError

from nlp_retrieval.benchmarks.cost import AnsweringCost
from nlp_retrieval.benchmarks.stages.keys import identity_of, key_of
from nlp_retrieval.benchmarks.stages.shared import collected_warnings, from_disk
from nlp_retrieval.benchmarks.stages.store import Entry, StageStore
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.models import Answer, RetrievalResult
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.answering import AnsweredQuestion, BaseAnswerer
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count, record_calls, summed

__all__ = ["Answered", "answer_stage"]

_GROUP = "answers"


@dataclass(frozen=True)
class Answered:
    """The questions of a benchmark with their answers, and the cost.

    Args:
        questions: in order.
        cost: cost of answering them.
        calls: usage of each language model, as counted by this run.
    """

    questions: list[AnsweredQuestion]
    cost: AnsweringCost
    calls: Mapping[str, CallCounts]

    @property
    def answers(self) -> list[Answer]:
        """The answers, in the order of the questions."""
        return [one.answer for one in self.questions]


def answer_stage(
    answerer: BaseAnswerer,
    questions: Sequence[str],
    results: Sequence[Sequence[RetrievalResult]],
    store: StageStore | None,
) -> Answered:
    """Answer all questions, or reuse stored answers.

    Args:
        answerer: reads the first results.
        questions: the questions.
        results: the results for each.
        store: store for results of stages; None: do not store them.
    """
    read = [list(found[: answerer.passages]) for found in results]
    key = _key(answerer, questions, read) if store is not None else ""
    with record_calls() as calls:
        entry = store.find(_GROUP, key) if store is not None else None
        answers = _believed(entry, len(questions)) if entry is not None else None
        if entry is None or answers is None:
            entry, answers = _computed(answerer, questions, read)
            if store is not None:
                store.remember(_GROUP, key, entry)
                if not any(answer.failed for answer in answers):
                    store.keep(_GROUP, key, entry)
        else:
            for model, counts in entry.about["calls"].items():
                count(CallCounter(model), from_disk(CallCounts(**counts)))
    for text in entry.about["warnings"]:
        warnings.warn(text, RetrievalWarning, stacklevel=2)
    asked = summed(CallCounts(**counts) for counts in entry.about["calls"].values())
    cost = AnsweringCost(
        seconds=entry.about["seconds"],
        model_answers=asked.answers,
        model_cache_hits=asked.cache_hits,
        unanswered=sum(not answer.text and not answer.failed for answer in answers),
        failed=sum(answer.failed for answer in answers),
        dropped=sum(answer.dropped for answer in answers),
    )
    whole = [AnsweredQuestion(*one) for one in zip(questions, read, answers, strict=True)]
    return Answered(whole, cost, calls.by_model)


def _computed(
    answerer: BaseAnswerer, questions: Sequence[str], read: Sequence[Sequence[RetrievalResult]]
) -> tuple[Entry, list[Answer]]:
    with record_calls() as calls, collected_warnings() as texts:
        begin = time.perf_counter()
        answers = answerer.answer(questions, read)
        seconds = time.perf_counter() - begin
    about: Config = {
        "answers": [answer.model_dump(mode="json") for answer in answers],
        "calls": {model: asdict(counts) for model, counts in calls.by_model.items()},
        "seconds": seconds,
        "warnings": list(dict.fromkeys(texts)),
    }
    return Entry(about), answers


def _believed(entry: Entry, n_questions: int) -> list[Answer] | None:
    try:
        answers = [Answer.model_validate(told, strict=False) for told in entry.about["answers"]]
    except (ValidationError, KeyError, TypeError):
        return None
    return answers if len(answers) == n_questions else None


def _key(answerer: BaseAnswerer, questions: Sequence[str], read: Sequence[Sequence[RetrievalResult]]) -> str:
    digest = hashlib.sha256()
    for found in read:
        digest.update(f"{len(found)}:".encode())
        for result in found:
            item = result.item.model_dump_json().encode("utf-8", "surrogatepass")
            digest.update(f"{len(item)}:".encode() + item)
    content = {"answerer": identity_of(answerer), "questions": list(questions), "passages": digest.hexdigest()}
    return key_of("answers", content)
