"""The overlap of claim and document, part by part, as one would count it by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nlp_retrieval import OverlapReranker, SearchableItem
from nlp_retrieval.text.mentions import mentions_by_rules

PARTS = ("entities", "proper_nouns", "phrases")


def document(content: str, title: str = "", item_id: str = "d") -> SearchableItem:
    return SearchableItem(item_id=item_id, content=content, metadata={"title": title} if title else {})


def parts_of(claim: str, item: SearchableItem, reranker: OverlapReranker | None = None) -> tuple[float, float, float]:
    made = (reranker or OverlapReranker()).score_pairs([claim], [item])
    return tuple(round(float(made[part][0]), 6) for part in PARTS)  # type: ignore[return-value]


def test_entities_are_the_share_of_the_claims_entities_that_the_document_has() -> None:
    claim = "Stanley Kubrick met Arthur C Clarke in New York."
    assert mentions_by_rules(claim).entities == {"stanley kubrick", "arthur c clarke", "new york"}
    assert parts_of(claim, document("He and Stanley Kubrick lived in New York."))[0] == round(2 / 3, 6)
    assert parts_of(claim, document("A kubrick is a toy."))[0] == 0.0


def test_proper_nouns_are_the_share_of_its_single_names_and_years() -> None:
    claim = "In 1968 Stanley Kubrick filmed in London."
    assert mentions_by_rules(claim).proper_nouns == {"1968", "stanley", "kubrick", "london"}
    assert parts_of(claim, document("The London agent of Vivian Kubrick"))[1] == 0.5
    assert parts_of(claim, document("It came out in 1968."))[1] == 0.25


def test_phrases_are_the_share_of_its_phrases_that_stand_verbatim_in_the_document() -> None:
    claim = "the swimming pool designer won two gold medals"
    assert mentions_by_rules(claim).phrases == {"swimming pool designer won", "gold medals"}
    assert parts_of(claim, document("He won gold medals and a swimming pool."))[2] == 0.5
    assert parts_of(claim, document("goldgold medals"))[2] == 0.0


def test_a_title_that_stands_in_the_claim_is_a_whole_phrase_match_without_its_qualifier() -> None:
    claim = "Who directed The Shining with Jack Nicholson?"
    assert parts_of(claim, document("A horror film.", "The Shining (film)"))[2] == 1.0
    assert parts_of(claim, document("A horror film.", "Shin"))[2] == 0.0


@example(claim="0+0.0", content="", title="")
@given(claim=st.text(max_size=80), content=st.text(max_size=80), title=st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_any_texts_give_parts_between_0_and_1_and_a_document_equal_to_the_claim_has_all_of_them(
    claim: str, content: str, title: str
) -> None:
    assert all(0.0 <= part <= 1.0 for part in parts_of(claim, document(content, title)))
    found = mentions_by_rules(claim)
    same = parts_of(claim, document(claim))
    assert same == (float(bool(found.entities)), float(bool(found.proper_nouns)), float(bool(found.phrases)))


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import spacy

    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "WORK", "pattern": "a clockwork orange"}, {"label": "PERSON", "pattern": "Kubrick"}])
    folder = tmp_path_factory.mktemp("spacy") / "pipeline"
    nlp.to_disk(folder)
    return folder


def test_a_spacy_pipeline_finds_the_entities_where_one_is_given(pipeline: Path) -> None:
    reranker = OverlapReranker(spacy_pipeline=str(pipeline))
    claim = "Kubrick filmed a clockwork orange in London"
    assert parts_of(claim, document("who read a clockwork orange in London"), reranker)[:2] == (0.5, 0.0)
    assert parts_of(claim, document("Kubrick lived"), reranker)[:2] == (0.5, 1.0)
    # and the same once more, from what is remembered
    assert parts_of(claim, document("Kubrick lived"), reranker)[:2] == (0.5, 1.0)
