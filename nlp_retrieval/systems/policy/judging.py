"""Evaluation of the answers of a study against the known answers to each question about each subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nlp_retrieval import Evaluation, Gold, RetrievalEvaluator
from nlp_retrieval.errors import GoldError
from nlp_retrieval.systems.policy.schema import AnswerFile

__all__ = ["judged_answers"]


def judged_answers(files: Iterable[AnswerFile], gold: Mapping[tuple[str, int], Gold]) -> dict[str, Evaluation]:
    """Judge answers by method at 5 and 10 passages; questions that were not asked, or have no gold, do not count.

    Args:
        files: the answers of all subjects.
        gold: by subject and number of the question, keyed by item id.

    Raises:
        GoldError: no question that was asked has gold.
    """
    found: dict[str, dict[tuple[str, int], list[str]]] = {}
    for file in files:
        for one in file.questions.values():
            key = file.metadata.subject, one.question_number
            for method, chunks in one.lists(file.metadata.retrieval_method).items():
                if key in gold:
                    found.setdefault(method, {})[key] = [chunk.id for chunk in chunks]
    if not found:
        raise GoldError("none of the questions that were asked has gold; name it by subject and number of the question")
    judged = {}
    for method, lists in found.items():
        known = dict.fromkeys(name for ids in lists.values() for name in ids)
        known |= dict.fromkeys(name for key in lists for name in gold[key].relevance)
        rows = {name: row for row, name in enumerate(known)}
        evaluator = RetrievalEvaluator([gold[key] for key in lists], list(known), None, (5, 10))
        judged[method] = evaluator.evaluate_lists([[rows[name] for name in ids] for ids in lists.values()])
    return judged
