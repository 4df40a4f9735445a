"""Retrievers that define ``index`` and ``retrieve``, and rerankers that define ``rerank``.

The conformance kit holds some of them to every rule of an engine (``tests/conformance/as_described.py``); here are the forms of
what they return, and what is refused.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from nlp_retrieval import RetrievalResult, Searcher
from nlp_retrieval.core import BaseReranker, BaseRetriever, BaseUserQueryProcessor
from nlp_retrieval.errors import ConfigurationError, EngineError, RetrievalWarning

DOCUMENTS = {"a": "krill and snow", "b": "krill krill krill", "c": "a fox in the snow", "d": "nothing of the kind"}


def count(words, text):
    return float(sum(text.split().count(word) for word in words.split()))


class Counting(BaseRetriever):
    """Counts the words of the query."""

    def index(self, items, output_path):
        self.items = items

    def retrieve(self, processed_queries, output_path, k):
        return [self.form(self.found(" ".join(subqueries))[:k]) for subqueries in processed_queries]

    def found(self, query):
        pairs = [(item, count(query, item.content)) for item in self.items]
        return sorted((pair for pair in pairs if pair[1]), key=lambda pair: -pair[1])

    def form(self, pairs):
        return [RetrievalResult(item=item, score=score) for item, score in pairs]


class Items(Counting):
    def form(self, pairs):
        return [item for item, _ in pairs]


class Pairs(Counting):
    name = "pairs"

    def form(self, pairs):
        return [(item.item_id, score) for item, score in pairs]


class Ids(Counting):
    def form(self, pairs):
        return tuple(item.item_id for item, _ in pairs)


class ByLength(BaseReranker):
    """Reorders, and leaves the scores."""

    def rerank(self, nlqs, results, k):
        return [sorted(hits, key=lambda hit: len(hit.item.content))[:k] for hits in results]


def ids(results):
    return [[hit.item.item_id for hit in hits] for hits in results]


def search(retriever, tmp_path, query="krill snow", k=10, **others):
    searcher = Searcher([retriever], **others)
    searcher.index(DOCUMENTS, tmp_path / "index")
    return searcher.search(query, k=k)


@pytest.mark.parametrize("form", [Counting, Items, Pairs, Ids])
def test_every_form_of_a_hit_finds_the_same(form, tmp_path):
    searcher = Searcher([form()])
    searcher.index(DOCUMENTS, tmp_path / "index")
    assert ids(searcher.search("krill snow")) == [["b", "a", "c"]]
    assert ids(searcher.search("krill snow", k=1)) == [["b"]]


def test_another_signature_is_refused_when_the_class_is_defined():
    with pytest.raises(
        ConfigurationError, match=r"Odd\.retrieve\(query, k\): define retrieve\(self, processed_queries, output_path, k\)"
    ):

        class Odd(Counting):
            def retrieve(self, query, k): ...

    with pytest.raises(ConfigurationError, match=r"further parameters need a default"):

        class ByName(BaseReranker):
            def rerank(self, nlqs, results, k, *, alpha): ...

    class Fine(BaseReranker):
        def rerank(self, nlqs, results, k=10, alpha=0.5): ...


def test_a_retriever_that_opens_nothing_is_refused_before_it_builds():
    class Closed(BaseRetriever):
        build = search_batch = None

    with pytest.raises(ConfigurationError, match="Closed defines neither load nor load_segments"):
        Closed()


def test_what_cannot_index_leaves_no_index_and_what_can_does_it_once(tmp_path):
    times = []

    class Once(Counting):
        def index(self, items, output_path):
            times.append(len(items))
            super().index(items if len(items) > 1 else None + 1, output_path)

    assert ids(search(Once(), tmp_path)) == [["b", "a", "c"]]
    assert times == [4]
    with pytest.raises(TypeError):
        Searcher([Once()]).index({"a": "krill"}, tmp_path / "other")
    assert not list(tmp_path.glob("other/manifest*"))


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, r"returned NoneType for 1 queries; return one list of hits for each"),
        ([[("b", 1.0), ("a", 2.0)]], r"score 1 before one with 2; hits come best first.*negate distances"),
        ([[{"text": "krill"}]], r"returned \{'text': 'krill'\} \(dict\) as a hit"),
        ([[("a", 0.9), "b"]], r"only some hits have a score; give one to each, or to none"),
        ([[("a", float("nan"))]], r"whose score is nan; a score is a finite number"),
        ([["krill krill krill"]], r"'krill krill krill', the id of none of the 4 items that it got"),
    ],
)
def test_what_is_no_list_of_hits_is_refused_with_what_was_returned(returned, said, tmp_path):
    class Returning(Counting):
        def retrieve(self, processed_queries, output_path, k):
            return returned

    with pytest.raises(EngineError, match=said):
        search(Returning(), tmp_path)


def test_another_process_indexes_again_what_is_only_in_the_object(tmp_path):
    module = tmp_path / "mine.py"
    module.write_text(
        "import sys\nfrom nlp_retrieval import Searcher\nfrom nlp_retrieval.core import BaseRetriever\n"
        "class Mine(BaseRetriever):\n"
        "    def index(self, items, output_path):\n        self.items = items\n"
        "    def retrieve(self, processed_queries, output_path, k):\n"
        "        return [[i for i in self.items if query in i.content] for (query,) in processed_queries]\n"
        "if sys.argv[1] == 'index':\n    Searcher([Mine()]).index({'a': 'krill', 'b': 'snow'}, 'index')\n"
        "else:\n    print(Searcher([Mine()]).open('index').search('snow')[0][0].item.item_id)\n"
    )
    run = [sys.executable, str(module)]
    subprocess.run([*run, "index"], cwd=tmp_path, check=True)
    done = subprocess.run([*run, "search"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "b\n"


def test_the_order_of_a_reranker_counts_and_its_scores_where_they_agree(tmp_path):
    class NewScores(BaseReranker):
        def rerank(self, nlqs, results, k):
            scored = [[(hit.item, 1 / len(hit.item.content)) for hit in hits] for hits in results]
            return [sorted(pairs, key=lambda pair: -pair[1]) for pairs in scored]

    results = search(Counting(), tmp_path, reranker=ByLength())
    assert ids(results) == [["a", "b", "c"]]
    assert [hit.score for hit in results[0]] == [1, 1 / 2, 1 / 3]
    assert results[0][0].signals["counting.rank"] == 2.0
    assert ids(ByLength().rerank(["krill snow"], results, 2)) == [["a", "b"]]
    scores = [hit.score for hit in search(Counting(), tmp_path / "again", reranker=NewScores())[0]]
    assert scores == [1 / len(DOCUMENTS[name]) for name in "abc"]


def test_a_reranker_may_leave_results_out_and_must_not_invent_any(tmp_path):
    class FirstAlone(BaseReranker):
        def rerank(self, nlqs, results, k):
            return [hits[:1] for hits in results]

    class Inventing(BaseReranker):
        def rerank(self, nlqs, results, k):
            return [["z"] for _ in results]

    class Infinite(BaseReranker):
        def rerank(self, nlqs, results, k):
            return [[(hit, float("inf")) for hit in hits] for hits in results]

    assert ids(search(Counting(), tmp_path, reranker=FirstAlone())) == [["b"]]
    with pytest.raises(EngineError, match=r"whose score is inf"):
        search(Counting(), tmp_path / "third", reranker=Infinite())
    with pytest.raises(EngineError, match=r"returned 'z', the id of none of the 3 items that it got"):
        search(Counting(), tmp_path / "again", reranker=Inventing())


def test_subqueries_of_one_query_come_together_as_the_processor_made_them(tmp_path):
    asked = []

    class Grouped(Counting):
        def retrieve(self, processed_queries, output_path, k):
            asked.extend(processed_queries)
            return super().retrieve(processed_queries, output_path, k)

    class Halves(BaseUserQueryProcessor):
        def process(self, nlqs):
            return [nlq.split(" and ") for nlq in nlqs]

    searcher = Searcher([Grouped()], processor=Halves())
    assert Halves.name == "halves"
    searcher.index(DOCUMENTS, tmp_path)
    with pytest.warns(RetrievalWarning, match="found nothing for 1 of 3 queries: 1: empty or without a letter or digit"):
        found = searcher.search(["krill and snow", "fox", "! and ?"], 2)
    assert asked == [["krill", "snow"], ["fox"]]
    assert [[hit.item.item_id for hit in hits] for hits in found] == [["b", "a"], ["c"], []]
