"""Reading numbers of passages, and their stances on a claim, from a model's answer; None if it is unusable."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from nlp_retrieval.core import parse_json
from nlp_retrieval.lm import LONGEST_ANSWER

__all__ = ["Stance", "read_numbers", "read_stances"]

Stance = Literal["supports", "contradicts"]

_NUMBER = re.compile(r"(?<!\d)\d{1,7}(?!\d)")
_BETWEEN = re.compile(r"[\n,;]")
_NOTHING = frozenset(("[]", "{}", "none", "nothing", "n/a", "null"))
_DEEPEST = 4


def read_numbers(answer: object, valid: Collection[int]) -> list[int] | None:
    """Return the numbers in an answer, each once, in its order.

    Args:
        answer: a list, or text.
        valid: the shown numbers; others are dropped.

    Returns:
        Numbers; empty if the answer says that there are none; None if it is unusable.
    """
    pieces = list(_pieces(answer))
    found = [int(number) for piece in pieces for number in _NUMBER.findall(piece)]
    kept = list(dict.fromkeys(number for number in found if number in valid))
    if kept or (not found and _says_nothing(answer, pieces)):
        return kept
    return None


def read_stances(answer: object, valid: Collection[int]) -> dict[int, Stance] | None:
    """Return the stances of passages on a claim in an answer.

    A passage with both stances, or neither, is dropped.

    Args:
        answer: a list, or text, such as "3 supports, 5 contradicts".
        valid: the shown numbers; others are dropped.

    Returns:
        Stances by number, in its order; empty if the answer says that there are none; None if it is unusable.
    """
    pieces = list(_pieces(answer))
    said: dict[int, set[Stance]] = {}
    for piece in pieces:
        stance = _stance(piece)
        for number in _NUMBER.findall(piece)[:1]:
            if stance is not None and int(number) in valid:
                said.setdefault(int(number), set()).add(stance)
    stances = {number: next(iter(found)) for number, found in said.items() if len(found) == 1}
    if stances or (not said and _says_nothing(answer, pieces)):
        return stances
    return None


def _stance(piece: str) -> Stance | None:
    lower = piece.lower()
    supports, contradicts = "support" in lower, "contradict" in lower or "refute" in lower
    if supports == contradicts or "not " in lower or "neither" in lower:
        return None
    return "supports" if supports else "contradicts"


def _says_nothing(answer: object, pieces: Sequence[str]) -> bool:
    if isinstance(answer, str):
        return answer.strip(" \n`.\"'").lower() in _NOTHING
    return isinstance(answer, list) and all(piece.strip().lower() in _NOTHING for piece in pieces)


def _pieces(answer: object, depth: int = 0) -> Iterator[str]:
    """Yield the parts of an answer, each about one passage."""
    if isinstance(answer, str):
        text = answer[:LONGEST_ANSWER].strip()
        if depth < _DEEPEST and text[:1] in ("[", "{"):
            try:
                yield from _pieces(parse_json(text), depth + 1)
            except ValueError:
                pass
            else:
                return
        yield from _BETWEEN.split(text)
    elif isinstance(answer, Mapping) and depth < _DEEPEST:
        if all(not isinstance(value, list | dict) for value in answer.values()):
            yield " ".join(str(value) for value in answer.values())[:LONGEST_ANSWER]
        else:
            for value in answer.values():
                yield from _pieces(value, depth + 1)
    elif isinstance(answer, list | tuple) and depth < _DEEPEST:
        for one in answer[:1000]:
            yield from _pieces(one, depth + 1)
    elif isinstance(answer, int) and not isinstance(answer, bool):
        yield str(answer)[:20]
