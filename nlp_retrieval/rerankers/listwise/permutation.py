"""Reading an order of passages out of what a model wrote, and repairing it: nothing is lost, added or made up."""

from __future__ import annotations

import re
from typing import NamedTuple

from nlp_retrieval.lm.reading import LONGEST_ANSWER

_LIST = re.compile(r"\[[\d,;\s]*\]")
_BRACKETED = re.compile(r"\[(\d{1,9})\]")
_NUMBER = re.compile(r"(?<!\d)\d{1,9}(?!\d)")


class Permutation(NamedTuple):
    """An order of ``n`` passages.

    Args:
        order: ``[n]``, each place from 0 to n - 1 once, the best first.
        repaired: whether the answer named a passage twice or not at all, or one that is not there.
    """

    order: list[int]
    repaired: bool


def read_permutation(answer: object, n: int) -> Permutation | None:
    """Return the order in an answer; None where it names none of the passages.

    What is named twice counts where it stands first; what is not named follows in the order that it had.

    Args:
        answer: numbers from 1 to ``n``, as a list or in a text: ``[2, 1]``, ``[2] > [1]``, ``2, 1``.
        n: how many passages there are.
    """
    numbers = _numbers(answer[:LONGEST_ANSWER]) if isinstance(answer, str) else answer
    if not isinstance(numbers, list):
        return None
    numbers = numbers[:LONGEST_ANSWER]
    named = dict.fromkeys(number - 1 for number in numbers if type(number) is int and 1 <= number <= n)
    if not named:
        return None
    return Permutation([*named, *(place for place in range(n) if place not in named)], not len(named) == len(numbers) == n)


def _numbers(text: str) -> list[int]:
    """The longest list in a text; or else the numbers in brackets, or all numbers."""
    lists = [_NUMBER.findall(found) for found in _LIST.findall(text)]
    longest = max(lists, key=len, default=[])
    found = longest if len(longest) > 1 else _BRACKETED.findall(text) or _NUMBER.findall(text)
    return [int(number) for number in found]
