"""The status of a claim, by rules that are returned with it."""

from __future__ import annotations

from typing import Literal

__all__ = ["ClaimStatus", "status_of"]

ClaimStatus = Literal["VERIFIED", "SUPPORTED", "DISPUTED", "REFUTED", "UNVERIFIED"]


def status_of(supporting: int, contradicting: int) -> tuple[ClaimStatus, str]:
    """Return the status of a claim, and the rule that gave it.

    Args:
        supporting: how many independent origins support it.
        contradicting: how many contradict it.
    """
    if supporting and contradicting:
        return "DISPUTED", f"supported by {_origins(supporting)}, contradicted by {_origins(contradicting)}"
    if contradicting:
        return "REFUTED", f"contradicted by {_origins(contradicting)}, supported by none"
    if supporting > 1:
        return "VERIFIED", f"supported by {_origins(supporting)}, contradicted by none"
    if supporting:
        return "SUPPORTED", "supported by one independent origin, contradicted by none; VERIFIED needs two"
    return "UNVERIFIED", "neither supported nor contradicted by what is indexed"


def _origins(count: int) -> str:
    return f"{count} independent origin{'s' if count > 1 else ''}"
