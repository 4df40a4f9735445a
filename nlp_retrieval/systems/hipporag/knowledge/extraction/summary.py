"""What came of a run of extraction, in numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from nlp_retrieval.lm import CallCounts

__all__ = ["ExtractionSummary"]

_SHOWN = 3


@dataclass(frozen=True)
class ExtractionSummary:
    """What came of one run of extraction, in numbers.

    Args:
        extraction_id: fingerprint of prompt, model and settings.
        model: the language model.
        documents: that were read.
        kept: documents of these that the store had already, with this text.
        extracted: documents that were read by the model in this run.
        copied: documents whose text the store had under another id, or that have the text of another in this run.
        failed: documents without a usable answer; the next run asks again.
        not_asked: documents that were not asked about, because the endpoint was given up.
        cut: documents that were longer than the model is shown.
        entities: in the documents that were extracted or copied.
        triples: in these.
        dropped: entities and triples in the answers that were none.
        seconds: that it took.
        calls: calls, tokens and failures of the model.
        stopped: why it ended early; empty where it did not.
        reasons: why documents have no usable answer, with how many have each; the commonest first.
    """

    extraction_id: str
    model: str
    documents: int = 0
    kept: int = 0
    extracted: int = 0
    copied: int = 0
    failed: int = 0
    not_asked: int = 0
    cut: int = 0
    entities: int = 0
    triples: int = 0
    dropped: int = 0
    seconds: float = 0.0
    calls: CallCounts = field(default_factory=CallCounts)
    stopped: str = ""
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def reasons_told(self) -> str:
        """The three commonest reasons on one line, such as ``35 times the endpoint gave none: connection refused``."""
        more = len(self.reasons) - _SHOWN
        shown = "; ".join(f"{number:,} times {reason}" for reason, number in list(self.reasons.items())[:_SHOWN])
        return shown + (f"; and {more:,} other reasons" if more > 0 else "")

    @property
    def whole(self) -> bool:
        """Whether the store now has all documents that were read, and all were read."""
        return not self.failed and not self.not_asked and not self.stopped

    @property
    def per_minute(self) -> float:
        """Documents extracted or copied in a minute."""
        return 60 * (self.extracted + self.copied) / self.seconds if self.seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)
