"""What the answer and the notes of an agent cite: the sentence, and the steps at which its source came back and was opened."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from nlp_retrieval.agents.trajectory import Trajectory, cited_in
from nlp_retrieval.text.sentences import sentences_of


@dataclass(frozen=True)
class TrajectoryCitation:
    """A citation that an agent wrote.

    Args:
        agent: name of the agent.
        question_id: the question.
        step: number of the note that it is in, from 1; of an answer, the number after the last step.
        calls: how many searches and reads came before it.
        item_id: what it cites.
        claim: the sentence, without its marks; the whole text if it has none.
        came: number of the first step that returned or opened the item before; None if none did.
        opened: number of the first step that opened it before; None if none did.
        in_answer: whether it is in the answer.

    Examples:
        >>> (citation,) = trajectory_citations(trajectories[0])
        >>> citation.item_id, citation.came, citation.in_answer
        ('whale', 1, True)
    """

    agent: str
    question_id: str
    step: int
    calls: int
    item_id: str
    claim: str
    came: int | None
    opened: int | None
    in_answer: bool


def trajectory_citations(trajectory: Trajectory) -> list[TrajectoryCitation]:
    """Return the citations of an agent's notes and answer, in order.

    Args:
        trajectory: a trajectory. If it lists citations of which the answer has no mark, the whole answer is their claim.

    Examples:
        >>> (citation,) = trajectory_citations(trajectories[0])
        >>> citation.claim, citation.item_id, citation.came, citation.opened, citation.calls
        ('The blue whale eats krill.', 'whale', 1, None, 1)
    """
    came: dict[str, int] = {}
    opened: dict[str, int] = {}
    written: list[TrajectoryCitation] = []
    calls = 0

    def add(text: str, step: int, *, in_answer: bool) -> None:
        cited = [(item_id, claim) for claim, ids in _cited_sentences(text, {*came}) for item_id in ids]
        if in_answer and trajectory.citations is not None:
            wanted = dict.fromkeys(trajectory.citations)
            marked = {item_id for item_id, _ in cited}
            cited = [pair for pair in cited if pair[0] in wanted]
            cited += [(item_id, text.strip()) for item_id in wanted if item_id not in marked]
        written.extend(
            TrajectoryCitation(
                agent=trajectory.agent,
                question_id=trajectory.question_id,
                step=step,
                calls=calls,
                item_id=item_id,
                claim=claim,
                came=came.get(item_id),
                opened=opened.get(item_id),
                in_answer=in_answer,
            )
            for item_id, claim in cited
        )

    for number, step in enumerate(trajectory.steps, 1):
        if step.kind == "note":
            add(step.text, number, in_answer=False)
            continue
        calls += step.kind in ("search", "open")
        if step.kind == "open" and not step.error:
            opened.setdefault(step.item_id, number)
        for item_id in step.came:
            came.setdefault(item_id, number)
    add(trajectory.answer, len(trajectory.steps) + 1, in_answer=True)
    return written


def _cited_sentences(text: str, known: set[str]) -> list[tuple[str, list[str]]]:
    """Return the sentences with citations, and the ids that each cites; a mark after the end of a sentence belongs to it."""
    cited = []
    for line in text.splitlines():
        marks = cited_in(line, known)
        plain, places = _without_marks(line, [span for _, span in marks])
        spans = sentences_of(plain) or [(0, len(plain))]
        begins = [begin for begin, _ in spans]
        ids: dict[int, list[str]] = {}
        for (item_id, _), place in zip(marks, places, strict=True):
            ids.setdefault(max(bisect_left(begins, place) - 1, 0), []).append(item_id)
        cited += [
            (" ".join(plain[slice(*spans[number])].lstrip("-*\u2022 ").split()), list(dict.fromkeys(of_sentence)))
            for number, of_sentence in ids.items()
        ]
    return cited


def _without_marks(line: str, marks: list[tuple[int, int]]) -> tuple[str, list[int]]:
    """Return a line without its marks, and where each was in what is left."""
    kept: list[str] = []
    length, position = 0, 0
    places: dict[tuple[int, int], int] = {}
    for begin, end in dict.fromkeys(marks):
        part = line[position:begin]
        if line[end : end + 1] in ("", *".,;:!?"):
            if not part and kept:  # marks in a row
                kept[-1] = kept[-1].rstrip()
            part = part.rstrip()
        kept.append(part)
        length += len(part)
        places[begin, end], position = length, end
    return "".join([*kept, line[position:]]), [places[mark] for mark in marks]
