"""A multi-hop searcher is made of names and settings as any other."""

from __future__ import annotations

import pytest
from core.search.test_from_settings import LM, OWN_LM, check_made_again, check_parts

from nlp_retrieval import Bm25Retriever, ReciprocalRankFusion, Searcher
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.systems.hover.searcher import MultiHopSearcher


def test_parts_given_by_name_are_those_made_by_hand():
    by_hand = MultiHopSearcher([Bm25Retriever()], OWN_LM, fusion=ReciprocalRankFusion())
    check_parts(MultiHopSearcher(["bm25"], LM, fusion="rrf"), by_hand)


def test_it_is_made_again_of_its_configuration(tmp_path):
    check_made_again(MultiHopSearcher(["bm25"], LM, hops=2), tmp_path)


def test_it_is_no_plain_searcher():
    with pytest.raises(ConfigurationError, match="config: 'multi_hop' is not a Searcher; these are: "):
        Searcher.from_config({"name": "multi_hop", "retrievers": ["bm25"], "lm": LM})
