"""A knowledge store as the source of an index: known by what it holds, whichever way it came there."""

from __future__ import annotations

import json

import pytest
from hashed_words import HashedWords

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.systems.hipporag.knowledge import (
    Extraction,
    PassageKnowledge,
    PassageRecord,
    ReadKnowledge,
    Triple,
    passage_hash,
)
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from nlp_retrieval.systems.hipporag.sources import digest_of, source_of
from nlp_retrieval.systems.hipporag.store import KnowledgeStore

SMALL, LARGE = Extraction("openai/small", "{}"), Extraction("openai/large", "{}")
ITEMS = [SearchableItem(item_id=f"d{one}", content=f"Name{one} lives in Place{one % 2}") for one in range(4)]


def record(item, verb="lives in"):
    subject, target = item.content.split()[0], item.content.split()[-1]
    knowledge = PassageKnowledge((subject, target), (Triple(subject, verb, target),))
    return PassageRecord(item.item_id, passage_hash(item.title, item.content), ReadKnowledge(knowledge))


def filled(path, *batches, extraction=SMALL):
    with KnowledgeStore(str(path), create=True) as store:
        store.begin(extraction)
        for batch in batches:
            store.save(extraction, batch)
    return str(path)


def test_a_digest_is_that_of_what_a_store_holds_in_whatever_order_it_came(tmp_path):
    rows = [record(item) for item in ITEMS]
    once = filled(tmp_path / "once.db", rows)
    parts = filled(tmp_path / "parts.db", rows[2:], rows[1::-1])
    assert digest_of(once) == digest_of(parts) == digest_of(f"sqlite:///{once}")
    few, other, larger = (
        filled(tmp_path / "few.db", rows[:3]),
        filled(tmp_path / "other.db", [*rows[:3], record(ITEMS[3], "left")]),
        filled(tmp_path / "larger.db", rows, extraction=LARGE),
    )
    assert len({digest_of(one) for one in (once, few, other, larger)}) == 4
    before = digest_of(few)
    filled(few, rows[3:])
    assert digest_of(few) == digest_of(once) != before


def test_one_of_several_extractions_is_chosen_by_its_fingerprint(tmp_path, monkeypatch):
    path = filled(tmp_path / "both.db", [record(ITEMS[0])])
    filled(path, [record(ITEMS[1])], extraction=LARGE)
    with pytest.raises(ConfigurationError, match="one extraction is needed"):
        digest_of(path)
    monkeypatch.setenv("STORE", f"sqlite:///{path}")
    for named in (path, f"sqlite:///{path}", "env:STORE"):
        source = source_of(f"{named}#{LARGE.extraction_id[:6]}")
        assert [one is not None for one in source.of(ITEMS)] == [False, True, False, False]
    with pytest.raises(ConfigurationError, match="'0123' was asked for"):
        source_of(f"{path}#0123")


def test_an_index_of_a_store_is_that_of_the_file_with_the_same_triples(tmp_path):
    store = filled(tmp_path / "known.db", [record(item) for item in ITEMS])
    said = [record(item).read.knowledge for item in ITEMS]
    lines = [
        {"doc_id": item.item_id, "extracted_entities": [*one.entities], "extracted_triples": [[*vars(one.triples[0]).values()]]}
        for item, one in zip(ITEMS, said, strict=True)
    ]
    (tmp_path / "known.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = []
    for number, knowledge in enumerate((store, str(tmp_path / "known.jsonl"))):
        searcher = Searcher([HippoRagRetriever(HashedWords(), knowledge)])
        searcher.index(ITEMS, tmp_path / f"index{number}")
        found.append([(hit.item.item_id, hit.score) for hit in searcher.search("Who lives with Name1?", 4)[0]])
    assert found[0] == found[1]
