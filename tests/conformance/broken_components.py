"""All components of the library's kit that break a rule: importing the modules notes them."""

from . import (
    broken_answerers,
    broken_encoders,
    broken_fusions,
    broken_indexes,
    broken_loaders,
    broken_processors,
    broken_rerankers,
    broken_retrievers,
    broken_settings,
)
from .breaking import broken_in

BROKEN = broken_in(
    broken_answerers,
    broken_encoders,
    broken_fusions,
    broken_indexes,
    broken_loaders,
    broken_processors,
    broken_rerankers,
    broken_retrievers,
    broken_settings,
)
