"""What a model thinks is no part of what passages say."""

from __future__ import annotations

import json

import pytest
from chat_server import fields
from lm.test_thinking import THINKING

from nlp_retrieval import SearchableItem
from nlp_retrieval.systems.hipporag.extraction import KnowledgeExtractor, extract_knowledge
from nlp_retrieval.systems.hipporag.store import KnowledgeStore


@pytest.mark.parametrize("form", THINKING)
def test_what_is_extracted_follows_the_thoughts(server, model, tmp_path, form):
    passage = SearchableItem(item_id="a", content="It lies in Paris. It was in London.")
    draft = fields(knowledge='{"1": {"entities": ["draft"], "triples": []}}')
    final = fields(knowledge=json.dumps({"1": {"entities": [], "triples": [["a", "is", "b"]]}}))
    server.answer = lambda body: THINKING[form].format(draft, final)
    with KnowledgeStore(str(tmp_path / "store.db"), create=True) as store:
        extract_knowledge([passage], store, KnowledgeExtractor(model()))
        (known,) = store.source().of([passage])
    assert known is not None
    assert [triple.predicate for triple in known.triples] == ["is"]
