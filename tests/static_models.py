"""Static embeddings in a folder, made without the user's cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hashed_words import HashedWords, items_of

from nlp_retrieval.encoders import distill_static


def save_static(folder: Path, texts: Sequence[str], seed: int = 0, **settings: Any) -> Path:
    """Distil hashed words over the words of texts; another seed gives other vectors."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(folder.parent / f"{folder.name}-cache"))
        return distill_static(HashedWords(seed=seed), items_of(texts), folder, **settings)
