"""A question that describes what it asks about is searched by its clauses, the inner one first."""

from __future__ import annotations

from pathlib import Path

import pytest
from hashed_words import HashedWords

from nlp_retrieval import FaissRetriever, LinkGraphRetriever, RetrievalResult, SearchableItem, Searcher
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.retrievers.link_graph.clauses import clauses_of
from nlp_retrieval.text.surfaces import words_of

QUESTION = "Who is the sibling of the performer of Marsh Birds?"
TEXTS = {
    "Marsh Birds": "Marsh Birds is an album by the performer Ivo Lark from Norway.",
    "Twins": "Ivo Lark, a sibling, Zora Helm.",
    **{f"Filler {number}": f"a song {number}, its performer and a sibling." for number in range(8)},
}
ITEMS = [
    SearchableItem(item_id=name, content=text, metadata={"title": name} if name == "Marsh Birds" else {})
    for name, text in TEXTS.items()
]


class ContentWords(HashedWords):
    """Of the words that say something, without punctuation."""

    name = "content-words"

    def encode_passages(self, passages: list[str]) -> Vectors:
        return super().encode_passages([" ".join(w for w in words_of(text) if len(w) > 3 or w == "ivo") for text in passages])


DENSE = FaissRetriever(ContentWords(256))


def found(path: Path, query: str = QUESTION, *, depth: int = 50, clauses: bool = False) -> list[RetrievalResult]:
    searcher = Searcher([LinkGraphRetriever([DENSE], links=[], depth=depth, clauses=clauses)])
    searcher.index(ITEMS, path)
    return searcher.search(query, k=len(ITEMS))[0]


@pytest.mark.filterwarnings("ignore:link_graph found no links")
def test_the_passage_that_only_the_answer_to_the_inner_question_names_is_found(tmp_path: Path) -> None:
    plain, by_clauses = found(tmp_path / "index", depth=4), found(tmp_path / "index", depth=4, clauses=True)
    assert "Twins" not in [hit.item.item_id for hit in plain]
    similarity = {hit.item.item_id: hit.signals["link_graph.similarity"] for hit in by_clauses}
    query, answered, twins = DENSE.encoder.encode_queries([QUESTION, "sibling Ivo Lark", TEXTS["Twins"]])
    assert similarity["Twins"] == pytest.approx(float(query @ twins + answered @ twins), abs=1e-6)


def test_clauses_without_vectors_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="clauses=True compares vectors; add a faiss seed, or name an encoder"):
        LinkGraphRetriever(["bm25"], clauses=True)


@pytest.mark.filterwarnings("ignore:link_graph found no links")
def test_a_passage_that_only_a_clause_leads_to_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "index"
    retriever = LinkGraphRetriever([DENSE], links=[], depth=2, clauses=True)
    searcher = Searcher([retriever])
    searcher.index(ITEMS, path)
    hits = searcher.search(QUESTION, k=3)[0]
    reasons = {hit.item.item_id: str(*told.values()) for hit, told in zip(hits, searcher.explain(QUESTION, hits), strict=True)}
    assert "with a name in place of a clause" in reasons["Twins"]


def test_a_clause_is_a_question_of_its_own_and_questions_that_compare_have_none() -> None:
    for query, inner, with_name in (
        ("Who is the spouse of the director of Heat?", "the director of Heat", "Who is the spouse of X"),
        ("When did Ivo Lark's country join the war?", "Ivo Lark's country", "When did X join the war"),
    ):
        assert {clause.inner: clause.answered_by("X") for clause in clauses_of(query)}[inner] == with_name
    for query in (
        "Who is older, the director of Heat or the director of Alien?",
        "Do the authors of Heat and Alien have the same nationality?",
        "In what county is the city where Ada was born",  # asks by no question mark and no first word
    ):
        assert clauses_of(query) == []
