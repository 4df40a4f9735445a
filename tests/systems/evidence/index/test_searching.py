"""What is found, when, and by which figures a project describes itself."""

from __future__ import annotations

import json

import pytest
from hashed_tokens import HashedTokens

from nlp_retrieval import Bm25Retriever, ColbertRetriever, OverlapReranker, Searcher
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.errors import IndexMismatchError
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex, relevance_of
from nlp_retrieval.systems.evidence.verdict.claims import ClaimVerifier
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from systems.evidence.index.sources import LAKE, LAKE_TEXT, TOWN, TOWN_TEXT, lexical, told, two_sources


def held_ids(index):
    return {item.item_id for item in open_generation(index.index_path).items.stream_live()}


def test_a_source_is_found_after_building_and_not_before(tmp_path):
    index = lexical(tmp_path)
    index.build_index()
    index.add_document(LAKE_TEXT, LAKE, "Lakes", "B", "2026-01-19")
    assert index.search("lake") == []
    index.build_index()
    (found,) = index.search("When does the lake freeze?")
    assert (found.url, found.title, found.quality, found.fetch_date) == (LAKE, "Lakes", "B", "2026-01-19")
    assert index.text(found.key)[found.start : found.end] == found.content == LAKE_TEXT
    assert found.score > 0
    assert found.signals["bm25.rank"] == 1
    assert [found[key] for key in ("content", "url", "title", "quality", "score")] == [
        *(LAKE_TEXT, LAKE, "Lakes", "B"),
        found.score,
    ]
    assert dict(found)["fetch_date"] == "2026-01-19"
    assert (found.get("url"), found.get("text", ""), "url" in found, "text" in found) == (LAKE, "", True, False)
    with pytest.raises(KeyError, match="no 'text'; there are content, url, title"):
        found["text"]


def test_what_is_found_is_written_as_json(tmp_path, subtests):
    index = two_sources(tmp_path)
    found = index.search("When does the lake freeze?")[0]
    assert json.loads(found.to_json()) == dict(found)
    for side, claim in (
        ("supporting", "The lake freezes in January."),
        ("weak", "The lake freezes in January in the hard winters of the north."),
        ("contradicting", "The lake does not freeze in January."),
        ("neutral", "The lake is 300 metres deep in January."),
    ):
        with subtests.test(side):
            written = json.loads(ClaimVerifier(index, LexicalVerifier()).verify(claim, "C3").to_json())
            assert (written["min_quality"], written["claim_type"]) == ("C", "C3")
            assert written[f"{side}_evidence"][0]["passage"]["content"] == found.content


def test_late_interaction_has_a_folder_of_its_own(tmp_path):
    index = EvidenceIndex(tmp_path, model_name="colbert-ir/colbertv2.0")
    assert index.index_path == tmp_path / "10_graph" / "colbert_index"
    assert index.search("nothing is opened for this") == []
    index = EvidenceIndex(tmp_path, Searcher([ColbertRetriever(HashedTokens(16), bits=None)]), "colbert_index")
    index.add_document(LAKE_TEXT, LAKE)
    index.add_document(TOWN_TEXT, TOWN)
    index.build_index()
    assert index.search("lake january")[0].url == LAKE
    assert lexical(tmp_path).search("lake") == []


def test_what_was_deleted_is_not_found_even_before_building(tmp_path):
    index = two_sources(tmp_path)
    index.delete(TOWN)
    assert index.search("town founded by salt traders") == []
    index.build_index()
    assert len(held_ids(index)) == 1
    index.delete(LAKE)
    index.build_index()
    assert not index.index_path.exists()
    assert index.search("lake") == []
    assert not told(index)["index_built"]
    index.add_document(LAKE_TEXT, LAKE)
    index.build_index()
    assert len(index.search("lake")) == 1


def test_the_quality_is_filtered_before_the_best_are_taken(tmp_path):
    """Ten sources of a low grade fit better than all hundred of a high one."""
    index = lexical(tmp_path)
    for number in range(10):
        index.add_document(f"Lake freezes. Lake freezes. Copy {number}.", f"https://low.example/{number}", source_quality="E")
    for number in range(100):
        text = f"Report {number} on many things says that at some time the lake in the valley freezes over."
        index.add_document(text, f"https://high.example/{number}", source_quality="B")
    index.build_index()
    assert {found.quality for found in index.search("lake freezes", k=10)} == {"E"}
    found = index.search("lake freezes", k=10, min_quality="B")
    assert len(found) == 10
    assert {one.quality for one in found} == {"B"}
    assert len(index.search_for_claim("The lake freezes")) == 5
    assert index.search("lake freezes", min_quality="A") == []


def test_another_searcher_is_told_to_build_and_then_searches(tmp_path):
    two_sources(tmp_path)
    other = EvidenceIndex(tmp_path, Searcher([Bm25Retriever(stemmer="german")], reranker=OverlapReranker()))
    with pytest.raises(IndexMismatchError, match="call build_index"):
        other.search("lake")
    other.build_index()
    assert other.search("lake")[0].url == LAKE


def test_the_metadata_file_says_what_there_is(tmp_path):
    index = lexical(tmp_path)
    index.add_document(LAKE_TEXT, LAKE, "Lakes", "B", "2026-01-19T14:30:00Z")
    key = index.source(LAKE).key
    entry = {"url": LAKE, "title": "Lakes", "quality": "B", "fetch_date": "2026-01-19T14:30:00Z", "passage_count": 1}
    stats = {"total_queries": 0, "avg_results_per_query": 0.0}
    stored = {"index_built": False, "document_count": 1, "indexed_hashes": [], "sources": {key: entry}}
    stored |= {"retrieval_stats": stats}
    assert told(index) == stored
    index.build_index()
    index.search("lake freezes")
    index.search("Lake  freezes")
    assert index.search("nothing like it") == []
    index.close()
    stats = {"total_queries": 3, "avg_results_per_query": 0.6667}
    assert told(index) == stored | {"index_built": True, "indexed_hashes": [key], "retrieval_stats": stats}
    assert index.metadata_path.read_text("utf-8") == json.dumps(told(index), indent=2, ensure_ascii=False) + "\n"


def test_the_figures_count_documents_sources_domains_and_passages(tmp_path):
    index = two_sources(tmp_path)
    index.add_document(LAKE_TEXT, "https://mirror.lakes.example.org/lake")
    index.add_document("word " * 300, "https://example.org/a")
    index.search("lake freezes in January")
    found = index.stats()
    assert (found["document_count"], found["indexed_count"], found["source_count"], found["unique_domains"]) == (3, 2, 4, 3)
    assert (found["passage_count"], found["indexed_passage_count"], found["indexed_domains"]) == (5, 2, 3)
    assert found["total_queries"] == 1
    assert found["average_relevance"] == 10


def test_relevance_is_the_share_of_the_words_that_are_there():
    assert relevance_of("The lake freezes", "A LAKE that freezes.") == 10
    assert relevance_of("lake valley bridge town", "the lake in the valley") == 5
    assert relevance_of("to be or not to be", "to be") == 10 * 2 / 4
    assert relevance_of("", "lake") == 0
    assert relevance_of("湖", "lake") == 0
