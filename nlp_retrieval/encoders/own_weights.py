"""Weights in memory of their own.

Loaders map weights from their files where the type stays the same. Such weights are not read but looked at: new ones
written into the file in place are then those of the model that is open, and a file that is cut off ends the process.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def own_weights(model: torch.nn.Module) -> None:
    """Copy what a model has on the CPU; on other devices it is a copy already."""
    for tensor in chain(model.parameters(), model.buffers()):
        if tensor.device.type == "cpu":
            tensor.data = tensor.data.clone()
