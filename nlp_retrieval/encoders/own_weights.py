"""Weights in memory of their own.

Loaders memory-map weights whose type stays the same. If someone then overwrites the file in place, the weights of the
open model change with it, and if the file is truncated, the process dies.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def own_weights(model: torch.nn.Module) -> None:
    """Copy a model's weights on the CPU; those on other devices are copies already."""
    for tensor in chain(model.parameters(), model.buffers()):
        if tensor.device.type == "cpu":
            tensor.data = tensor.data.clone()
