"""What a benchmark is asked to do besides its searchers and data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WandbMode = Literal["online", "offline"]


@dataclass(frozen=True)
class WandbSettings:
    """Where runs go.

    Args:
        project: of Weights & Biases.
        mode: ``online``, ``offline``, or None: online where an API key is configured, else offline.
        group: what the runs of this benchmark have in common; by default the time at which it was first logged.
        entity: a user or team; by default the user's own.
    """

    project: str = "nlp_retrieval"
    mode: WandbMode | None = None
    group: str | None = None
    entity: str | None = None
