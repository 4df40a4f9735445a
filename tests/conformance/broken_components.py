"""All components that break a rule: importing the modules notes them."""

from . import (
    broken_answerers,
    broken_encoders,
    broken_fetchers,
    broken_fusions,
    broken_indexes,
    broken_loaders,
    broken_processors,
    broken_rerankers,
    broken_retrievers,
    broken_settings,
    broken_verifiers,
)
from .breaking import BROKEN

__all__ = [
    "BROKEN",
    "broken_answerers",
    "broken_encoders",
    "broken_fetchers",
    "broken_fusions",
    "broken_indexes",
    "broken_loaders",
    "broken_processors",
    "broken_rerankers",
    "broken_retrievers",
    "broken_settings",
    "broken_verifiers",
]
