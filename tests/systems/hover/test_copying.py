"""A multi-hop searcher is copied as any other."""

from __future__ import annotations

import pytest
from core.search.test_copying import copied_both_ways, told
from damage.collection import QUERIES, pages

from nlp_retrieval import Bm25Retriever, LanguageModel, Searcher
from nlp_retrieval.errors import IndexConflictError
from nlp_retrieval.systems.hover.searcher import MultiHopSearcher


@copied_both_ways
def test_a_multi_hop_searcher_goes_on_with_its_index(copied, tmp_path):
    lm = LanguageModel("openai/small", base_url="http://127.0.0.1:1/v1")  # which one hop asks nothing
    searcher = MultiHopSearcher([Bm25Retriever()], lm, hops=1)
    searcher.index(pages(), tmp_path / "index")
    other = copied(searcher)
    assert told(other.search(QUERIES, 5)) == told(searcher.search(QUERIES, 5))
    assert other.opened.path == tmp_path / "index"
    Searcher([Bm25Retriever()]).index(pages()[:9], tmp_path / "index", replace=True)
    with pytest.raises(IndexConflictError):
        copied(searcher).search(QUERIES)
