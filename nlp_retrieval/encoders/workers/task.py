"""The task of workers, to encode blocks of passages; and the checks of a worker before it starts.

The encoder is sent as its class and arguments, and each worker opens the model. A worker reports the encoder's identity with
the fingerprint of its model's files, the versions of all packages that compute, and a digest of this package's own code. Any
difference from the process that asked is an error before anything is encoded.
"""

from __future__ import annotations

import hashlib
import platform
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

import numpy as np

from nlp_retrieval._version import __version__
from nlp_retrieval.core.blocks import EncodedBatch, EncodedBlock
from nlp_retrieval.core.components.component import Component, canonical_json, refuse_secrets, with_held
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, checked_vectors
from nlp_retrieval.encoders.sparse_base import BaseSparseEncoder, checked_terms
from nlp_retrieval.encoders.token_base import BaseTokenEncoder, checked_tokens
from nlp_retrieval.encoders.workers.worker import Confirmed
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning

AnyEncoder = BaseEncoder | BaseTokenEncoder | BaseSparseEncoder

_COMPUTING = ("numpy", "sentence-transformers", "tokenizers", "torch", "transformers", "onnxruntime", "model2vec")
_ROOT = Path(__file__).parents[2]
_TRIAL = (
    "A river.",
    "The city on the river was founded by monks, who built a bridge of stone there in 1127.",
    " ".join(f"Line {number} of a longer passage tells of bridge number {number * 7}." for number in range(12)),
)
"""Text encoded by every worker: if the vectors differed, results would depend on who encodes which block."""


@dataclass(frozen=True)
class PassageTask:
    """Encodes batches of passages, and checks the result.

    Args:
        encoder: the encoder.
        dimension: required of the vectors of a dense encoder; None for any.
        projection: the matrix of an encoder that multiplies by one, see
            :meth:`~nlp_retrieval.encoders.token_base.BaseTokenEncoder.projection_matrix`.
    """

    encoder: AnyEncoder
    dimension: int | None = None
    projection: Vectors | None = None

    def __call__(self, texts: list[str]) -> EncodedBatch:
        """Encode one batch.

        Raises:
            ModelError: vectors that cannot be searched.
        """
        match self.encoder:
            case BaseTokenEncoder() as encoder:
                matrices = checked_tokens(encoder.encode_passages(texts), texts, encoder)
                counts = np.array([len(matrix) for matrix in matrices], np.uint32)
                rows = np.concatenate([*matrices, np.zeros((0, encoder.dimension), np.float32)])
            case BaseSparseEncoder() as encoder:
                offsets, terms, weights = checked_terms(encoder.encode_passages(texts), texts, encoder)
                counts = np.diff(offsets).astype(np.uint32)
                rows = np.stack([terms.astype(np.float32), weights], axis=1)
            case BaseEncoder() as encoder:
                rows = checked_vectors(encoder.encode_passages(texts), texts, encoder, self.dimension)
                counts = np.ones(len(texts), np.uint32)
        return EncodedBatch(rows, counts, self.encoder.cut_passages(texts))

    @property
    def key(self) -> str:
        """Key of the task, equal for equal tasks."""
        projection = None if self.projection is None else digest_of_matrix(self.projection)
        return canonical_json([self.encoder.kind, self.encoder.config, self.dimension, projection])

    def __str__(self) -> str:
        return repr(self.encoder)

    def facts(self) -> dict[str, str]:
        """Return what must be equal wherever passages are encoded together, without opening a model."""
        return facts_of(self.encoder)

    def confirmed(self, place: str) -> Confirmed:
        """Open the encoder, and report what it is.

        Raises:
            RetrievalError: its model is not there, or does not load.
        """
        return Confirmed(place, self.facts() | {"trial": self(list(_TRIAL)).checksum().hex()})

    def done(self, work: object) -> EncodedBlock:
        """Encode a block of texts, and collect the warnings."""
        texts = cast("list[str]", work)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RetrievalWarning)
            batch = self(texts)
        warned = [str(warning.message) for warning in caught if issubclass(warning.category, RetrievalWarning)]
        return EncodedBlock.of(batch, texts, warned)

    def elsewhere(self) -> PassageTask:
        """This task in the worker process; an encoder that came without its matrix gets it back."""
        if self.projection is None or not isinstance(self.encoder, BaseTokenEncoder):
            return self
        return PassageTask(self.encoder.with_projection(self.projection), self.dimension, self.projection)

    def require_sendable(self) -> None:
        """Raise a :class:`ConfigurationError` if another process could not create this encoder, or must not learn a secret."""
        refuse_secrets(self.encoder, "sent to workers")
        for part in with_held(self.encoder):
            if type(part).__module__ == "__main__" or "<locals>" in type(part).__qualname__:
                raise ConfigurationError(
                    f"workers cannot import {type(part).__qualname__}, which is defined in the script or notebook that runs, "
                    "or in a function; move it into a module"
                )


def facts_of(encoder: Component) -> dict[str, str]:
    """Return what must be equal wherever passages are encoded together, without opening a model."""
    versions = {f"version of {name}": found for name, found in computed_by().items() if name != "machine"}
    python = ".".join(platform.python_version_tuple()[:2])
    own = {"nlp_retrieval": __version__, "code of nlp_retrieval": _own_code(), "python": python}
    identity = {f"encoder.{key}": canonical_json(value) for key, value in encoder.identity.items()}
    return own | {"machine": platform.machine()} | versions | identity


@cache
def computed_by() -> dict[str, str]:
    """Versions of the packages that compute vectors."""
    versions = {"machine": platform.machine()}
    for package in _COMPUTING:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def digest_of_matrix(matrix: Vectors) -> str:
    """SHA-256 of a matrix's numbers."""
    return hashlib.sha256(np.ascontiguousarray(matrix).data).hexdigest()


@cache
def _own_code() -> str:
    """A digest of the files of this package: two working copies may have the same version number."""
    digest = hashlib.sha256()
    for file in sorted(_ROOT.rglob("*.py")):
        digest.update(file.relative_to(_ROOT).as_posix().encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
