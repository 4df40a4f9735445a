"""Base class of verifiers that can be calibrated: the file, read once, and its threshold."""

from __future__ import annotations

from nlp_retrieval.systems.evidence.verifiers.base import BaseVerifier
from nlp_retrieval.systems.evidence.verifiers.calibration import Calibration

__all__ = ["CalibratedVerifier"]


class CalibratedVerifier(BaseVerifier):
    """A verifier with the parameter ``calibration``: a file of ``nlp-retrieval evidence calibrate``, or None."""

    calibration: str | None
    _weights: Calibration | None = None

    @property
    def weights(self) -> Calibration | None:
        """Return the calibration, read at first use; None if the verifier has none.

        Raises:
            ModelError: the file is not a calibration.
        """
        if self.calibration is not None and self._weights is None:
            self._weights = Calibration.read(self.calibration)
        return self._weights

    @property
    def threshold(self) -> float:
        return super().threshold if self.weights is None else self.weights.threshold
