"""One thing in place of a list, a list in place of one, and results of the wrong kind: said, with how it is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nlp_retrieval import (
    Bm25Retriever,
    Searcher,
    WeightedSum,
)
from nlp_retrieval.core.components.component import BaseQueryLoader
from nlp_retrieval.core.components.registry import build, build_as
from nlp_retrieval.errors import ConfigurationError


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Searcher(Bm25Retriever()), "retrievers=Bm25Retriever(): Input should be a list or a mapping"),
        (
            lambda: Searcher([5]),
            "retrievers=[5]: Input should be an instance of BaseRetriever or an instance of Searcher or a valid string",
        ),
        (lambda: WeightedSum(weights=[1, float("nan")]), "weights=[1, nan]: Input should be a finite number"),
        (lambda: build("searchers", {"name": "searcher", "retrievers": {"name": "bm25"}}), "a list too: [{name: ...}]"),
        (
            lambda: build_as(BaseQueryLoader, "loaders", {"loader": "jsonl", "path": "x"}, "queries"),
            "queries: 'jsonl' is not a BaseQueryLoader",
        ),
    ],
)
def test_a_component_that_is_given_otherwise_is_told_how(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert said in str(caught.value)
