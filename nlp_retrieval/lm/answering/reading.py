"""Reading an answer out of what a model wrote: its text, its reasons, and the labels of what it cites."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nlp_retrieval.core.answer import Answer, Fact
from nlp_retrieval.lm.answering.prompt import ShownPassage
from nlp_retrieval.lm.reading import read_line

__all__ = ["Label", "ReadAnswer", "as_answer", "read_answer"]

Label = tuple[int, int | None]
"""The number of a passage, and that of a sentence in it or None for the whole; both from 1."""

_LABEL = re.compile(r"(?<![\w.])(\d{1,4})(?:(?:\.|,? ?sentence ?)(\d{1,4}))?(?!\w)", re.IGNORECASE)
_BRACKETED = re.compile(r"\[[\d.,; ]{1,60}\]")
_NO_ANSWER = frozenset({"no answer", "noanswer", "unanswerable"})
_MOST_WORDS, _MOST_REASONS, _LABELS_IN = 60, 200, 2_000


@dataclass(frozen=True)
class ReadAnswer:
    """What was read.

    Args:
        text: empty where the model says that there is no answer.
        reasoning: on one line.
        labels: of what it cites, in order, each once.
    """

    text: str
    reasoning: str
    labels: tuple[Label, ...]


def read_answer(fields: object) -> ReadAnswer | None:
    """Return what can be used of a model's fields ``answer``, ``reasoning`` and ``citations``; None without an answer.

    Citations may also stand in brackets behind the answer. An answer longer than 60 words is cut.

    Args:
        fields: by name; anything else is no answer.
    """
    if not isinstance(fields, Mapping) or not isinstance(told := fields.get("answer"), str):
        return None
    bracketed = _BRACKETED.findall(told[:_LABELS_IN])
    text = read_line(_BRACKETED.sub(" ", told) if bracketed else told, _MOST_WORDS)
    if text is None:
        return None
    if text.lower().strip(" .") in _NO_ANSWER:
        text = ""
    cited = _text_of(fields.get("citations"))
    labels = dict.fromkeys(label for part in (cited, *bracketed) for label in _labels(part))
    return ReadAnswer(text, read_line(fields.get("reasoning"), _MOST_REASONS) or "", tuple(labels))


def as_answer(read: ReadAnswer, passages: Sequence[ShownPassage]) -> Answer:
    """Return an answer that cites what it was given by item ids and facts; other citations are dropped and counted.

    Args:
        read: what the model wrote.
        passages: what it was shown.
    """
    if not read.text:
        return Answer(text="", reasoning=read.reasoning)
    ids: dict[str, None] = {}
    facts: dict[Fact, None] = {}
    dropped = 0
    for number, sentence in read.labels:
        passage = passages[number - 1] if 1 <= number <= len(passages) else None
        fact = passage.fact(sentence) if passage is not None and sentence is not None else None
        if passage is None or (sentence is not None and fact is None):
            dropped += 1
            continue
        ids[passage.item.item_id] = None
        if fact is not None:
            facts[fact] = None
    return Answer(text=read.text, reasoning=read.reasoning, passages=list(ids), facts=list(facts), dropped=dropped)


def _text_of(citations: object) -> str:
    if isinstance(citations, list):
        citations = ", ".join(str(one)[:40] for one in citations[:100])
    return citations[:_LABELS_IN] if isinstance(citations, str) else ""


def _labels(text: str) -> list[Label]:
    return [(int(match[1]), int(match[2]) if match[2] else None) for match in _LABEL.finditer(text)]
