"""How sure a model is of held-out pairs: the temperature of its logits by which their loss is least."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.systems.evidence.verifiers.training.batches import LABELS
from nlp_retrieval.systems.evidence.verifiers.training.examples import TrainingExample

__all__ = ["best_temperature"]

Logits = NDArray[np.float64]

_TEMPERATURES = np.geomspace(0.5, 8, 49)


def best_temperature(logits: Logits, examples: Sequence[TrainingExample]) -> tuple[float, float]:
    """By what logits are divided so that their loss is least, and that loss.

    A model that has learnt its pairs is too sure of others (Guo et al., ICML 2017): by its loss as it is, one that tells labels
    apart better would often be thrown away for one that has seen less.

    Args:
        logits: ``[examples, 3]``.
        examples: as many.
    """
    loss, temperature = min((_loss(logits / temperature, examples), temperature) for temperature in _TEMPERATURES)
    return temperature, loss


def _loss(logits: Logits, examples: Sequence[TrainingExample]) -> float:
    raised = logits - logits.max(axis=1, keepdims=True)
    probabilities = np.exp(raised) / np.exp(raised).sum(axis=1, keepdims=True)
    losses: defaultdict[str, list[float]] = defaultdict(list)
    for row, example in zip(probabilities, examples, strict=True):
        likely = 1 - row[0] if example.label == "not_support" else row[LABELS.index(example.label)]
        losses[example.collection].append(-float(np.log(max(likely, 1e-12))))
    return float(np.mean([np.mean(some) for some in losses.values()]))
