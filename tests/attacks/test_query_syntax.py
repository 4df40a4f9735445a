"""What a query language would obey is words to ours: the same query without its marks finds the same, in the same order."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from nlp_retrieval import Bm25Retriever, PyseriniRetriever, RetrievalWarning, SearchableItem, Searcher

TEXTS = [
    "red fox beside the river", "blue whale in the harbour", "the novel of a director", "a green tree and a fox",
    "rivers run to the sea", "foxes", "contents raw docid id vector", "album by a singer", "AND OR NOT TO", "zebra",
    "boost 9 fox whale river novel tree album",
]  # fmt: skip
ITEMS = [SearchableItem(item_id=f"d{n}", content=text, metadata={"of": n % 3}) for n, text in enumerate(TEXTS)]
SYNTAX = {
    "*:*": "",
    "contents:fox": "contents fox",
    "fox AND whale": "fox and whale",
    "fox && !whale": "fox whale",
    "fox^9 whale": "fox 9 whale",
    '"fox whale"~5': "fox whale 5",
    "/(a+)+b/": "a b",
    '"fox': "fox",
    "(((": "",
    "_query_:\"{!xmlparser v='fox'}\"": "_query_ xmlparser v fox",
    "fn:ordered(fox whale)": "fn ordered fox whale",
}
JOINED = {"contents:fox": "", "fn:ordered(fox whale)": "fox whale"}
"""A colon between letters is part of a word to Lucene's tokenizer, as Unicode has it: such a word stands nowhere."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("syntax") / "index"
    Searcher([PyseriniRetriever(), Bm25Retriever()]).index(ITEMS, path)
    return path


def ranked(searcher: Searcher, queries: list[str], **more: object) -> list[list[tuple[str, float]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # of queries without a word
        found = searcher.search(queries, len(ITEMS), **more)  # type: ignore[arg-type]
    return [[(hit.item.item_id, hit.score) for hit in hits] for hits in found]


@pytest.mark.parametrize("retriever", [PyseriniRetriever(), Bm25Retriever()], ids=["pyserini", "bm25"])
def test_syntax_is_words(retriever: PyseriniRetriever | Bm25Retriever, index: Path) -> None:
    searcher = Searcher([retriever]).open(index)
    joined = JOINED if isinstance(retriever, PyseriniRetriever) else {}
    plain = ranked(searcher, list((SYNTAX | joined).values()))
    found = ranked(searcher, list(SYNTAX))
    assert sum(map(bool, plain)) > 4
    for text, hits, wanted in zip(SYNTAX, found, plain, strict=True):
        assert hits == wanted, text
