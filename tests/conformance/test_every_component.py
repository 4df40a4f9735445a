"""No component that the library registers goes without a conformance class."""

from __future__ import annotations

import pytest
from soaking import Figures

from . import (
    test_answerers,
    test_encoders,
    test_fusions,
    test_loaders,
    test_processors,
    test_rerankers,
    test_retrievers,
)
from .checked import check_components, components_in

MODULES = {
    "loaders": test_loaders,
    "processors": test_processors,
    "retrievers": test_retrievers,
    "rerankers": test_rerankers,
    "encoders": test_encoders,
    "fusions": test_fusions,
    "answerers": test_answerers,
}


@pytest.mark.parametrize("kind", sorted(MODULES))
def test_every_registered_component_has_a_conformance_class(kind: str, figures: Figures) -> None:
    ours = components_in(kind, "nlp_retrieval") - components_in(kind, "nlp_retrieval.systems")
    check_components(kind, MODULES[kind], ours, figures)
