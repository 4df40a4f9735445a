"""The index opened by a copied searcher: in another process it opens the same index, and no other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.index.manifest import RetrieverRecord
from nlp_retrieval.errors import IndexConflictError


@dataclass(frozen=True)
class OpenedIndex:
    """An index, as far as a searcher uses it.

    Args:
        path: the index directory.
        fingerprint: fingerprint of its items, and of the files of the searcher's retrievers.
        generation: its number, for messages.
    """

    path: Path
    fingerprint: str
    generation: int

    @classmethod
    def of(cls, generation: Generation, records: Sequence[RetrieverRecord]) -> OpenedIndex:
        """Return the description of an opened index.

        Args:
            generation: the opened generation.
            records: records of the retrievers that search it.
        """
        segments = [segment for record in records for segment in record.segments]
        files = [[name, file.sha256] for segment in segments for name, file in sorted(segment.files.items())]
        content = canonical_json({"corpus": generation.manifest.corpus.fingerprint, "files": files})
        return cls(generation.path, hashlib.sha256(content.encode()).hexdigest(), generation.manifest.generation)

    def check_is(self, found: OpenedIndex) -> None:
        """Compare with the current index.

        Raises:
            IndexConflictError: it is another index.
        """
        if found.fingerprint != self.fingerprint:
            raise IndexConflictError(
                f"{self.path} holds another index now (generation {found.generation}) than the one that this searcher had "
                f"opened when it was copied (generation {self.generation}); call open() to search what is there now"
            )
