"""What can be looked up of a cited sentence in its source, whatever a verifier says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nlp_retrieval.systems.evidence.citations.quoted import missing_quotations
from nlp_retrieval.systems.evidence.verifiers.signals.checks import Checks, check
from nlp_retrieval.systems.evidence.verifiers.signals.counts import Miscounted, miscounted
from nlp_retrieval.systems.evidence.verifiers.signals.figures import missing_figures
from nlp_retrieval.systems.evidence.verifiers.signals.names import unmatched_names

__all__ = ["LookedUp", "looked_up"]


@dataclass(frozen=True)
class LookedUp:
    """What was looked up of a sentence in a source.

    Args:
        checks: of the sentences that were read, and which numbers, dates and names all of the source lacks.
        miscounted: numbers that the source says of something else.
        quotations: that it does not have word by word.
    """

    checks: Checks
    miscounted: list[Miscounted]
    quotations: tuple[str, ...]

    @property
    def parted(self) -> bool:
        """Whether something parts the two, so that the source does not say this."""
        checks = self.checks
        return bool(
            checks.missing_numbers or self.miscounted or self.quotations or checks.contradiction or checks.is_of_another
        )


def looked_up(claim: str, read: str, whole: str, *, quoted: bool = False) -> LookedUp:
    """Look up a claim in a source.

    Args:
        claim: a sentence of a report.
        read: what of the source was read.
        whole: all of it, with its title; what is missing in the part that was read may stand there.
        quoted: whether the claim is in a block quote, so that the source has to have it word by word.
    """
    checks = check(claim, read)
    if checks.missing_numbers:
        missing = missing_figures(claim, whole)
        checks = replace(checks, missing_numbers=missing.dates + missing.numbers, unclear_numbers=missing.unclear)
    if checks.missing_names:
        checks = replace(checks, missing_names=tuple(unmatched_names(claim, whole)))
    counted = miscounted(claim, whole) if miscounted(claim, read) else []
    return LookedUp(checks, counted, missing_quotations(claim, whole, all_quoted=quoted))
