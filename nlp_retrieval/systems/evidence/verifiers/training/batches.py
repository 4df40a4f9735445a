"""Batches of examples for a model: tokens of claims and texts of similar length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.systems.evidence.verifiers.training.examples import TrainingExample

__all__ = ["LABELS", "Batch", "batches_of"]

LABELS = ("support", "contradict", "neutral")
"""Labels of a trained model, in order."""

_LABEL_NUMBERS = {"support": 0, "contradict": 1, "neutral": 2, "not_support": 3}


@dataclass(frozen=True)
class Batch:
    """Examples that are computed together.

    Args:
        tokens: ``[texts, length]`` input ids, 0 for padding.
        types: ``[texts, length]`` 0 for the claim, 1 for the text.
        mask: ``[texts, length]`` 1 for a token.
        example: ``[texts]`` the number in this batch of a text's example, ascending.
        labels: ``[examples]`` 0 support, 1 contradict, 2 neutral, 3 anything but support.
        numbers: ``[examples]`` the examples' numbers in the list that was batched.
    """

    tokens: NDArray[np.int64]
    types: NDArray[np.int64]
    mask: NDArray[np.int64]
    example: NDArray[np.int64]
    labels: NDArray[np.int64]
    numbers: NDArray[np.int64]


def batches_of(examples: Sequence[TrainingExample], tokenizer: Any, max_length: int, batch_tokens: int) -> list[Batch]:
    """Return batches of examples of similar length, short ones first.

    Args:
        examples: at least one.
        tokenizer: of the model, by transformers.
        max_length: tokens of a claim and a text; the text is cut.
        batch_tokens: of a batch, padding included, unless one example has more.
    """
    texts = [(number, text) for number, example in enumerate(examples) for text in example.texts]
    encoded = tokenizer(
        [examples[number].claim[:1000] for number, _ in texts],
        [text for _, text in texts],
        truncation="longest_first",
        max_length=max_length,
    )
    tokens_of, types_of = (
        encoded["input_ids"],
        encoded.get("token_type_ids") or [[0] * len(ids) for ids in encoded["input_ids"]],
    )
    parts: list[list[int]] = [[] for _ in examples]
    for place, (number, _) in enumerate(texts):
        parts[number].append(place)
    lengths = [max(len(tokens_of[place]) for place in places) for places in parts]
    order = sorted(range(len(examples)), key=lambda number: (lengths[number], number))
    batches: list[Batch] = []
    some: list[int] = []
    n_texts = 0
    for number in order:
        if some and (n_texts + len(parts[number])) * lengths[number] > batch_tokens:
            batches.append(_batch(some, parts, examples, tokens_of, types_of))
            some, n_texts = [], 0
        some.append(number)
        n_texts += len(parts[number])
    return [*batches, _batch(some, parts, examples, tokens_of, types_of)] if some else batches


def _batch(
    some: list[int],
    parts: list[list[int]],
    examples: Sequence[TrainingExample],
    tokens_of: list[list[int]],
    types_of: list[list[int]],
) -> Batch:
    places = [place for number in some for place in parts[number]]
    width = max(len(tokens_of[place]) for place in places)
    tokens, types, mask = (np.zeros((len(places), width), np.int64) for _ in range(3))
    for row, place in enumerate(places):
        length = len(tokens_of[place])
        tokens[row, :length], types[row, :length], mask[row, :length] = tokens_of[place], types_of[place], 1
    example = np.repeat(np.arange(len(some)), [len(parts[number]) for number in some])
    labels = np.array([_LABEL_NUMBERS[examples[number].label] for number in some])
    return Batch(tokens, types, mask, example, labels, np.array(some))
