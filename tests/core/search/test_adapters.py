"""Retrievers that define ``index`` and ``retrieve``, and rerankers that define ``rerank``, as people write them.

The conformance kit holds three of them to every rule of an engine (``tests/conformance/as_described.py``); here are the forms
of their methods and of what they return, and what is refused.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval import Bm25Retriever, RetrievalResult, Searcher, compare_systems
from nlp_retrieval.core import BaseLoader, BaseReranker, BaseRetriever, Hits
from nlp_retrieval.errors import ConfigurationError, EngineError, ItemError, RetrievalWarning

DOCUMENTS = {"a": "krill and snow", "b": "krill krill krill", "c": "a fox in the snow", "d": "nothing of the kind"}


def counted(query, texts):
    """Positions of the texts that hold the query's words, best first, with their counts."""
    counts = [sum(text.split().count(word) for word in query.split()) for text in texts]
    found = sorted((position for position, count in enumerate(counts) if count), key=lambda position: -counts[position])
    return [(position, float(counts[position])) for position in found]


class Counting(BaseRetriever):
    """Holds the items."""

    def index(self, items, output_path):
        self.items = list(items)

    def found(self, query):
        return counted(query, [item.content for item in self.items])


def ids(results):
    return [[hit.item.item_id for hit in hits] for hits in results]


def search(retriever, tmp_path, query="krill snow", k=10, **others):
    searcher = Searcher([retriever], **others)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # another object may have indexed them before
        searcher.index(DOCUMENTS, tmp_path / "index")
    return searcher.search(query, k=k)


class Results(Counting):
    def retrieve(self, processed_queries, output_path, k):
        lists = [self.found(" ".join(subqueries)) for subqueries in processed_queries]
        return [[RetrievalResult(item=self.items[at], score=score) for at, score in found][:k] for found in lists]


class Positions(Counting):
    def retrieve(self, query, k):
        return [at for at, _ in self.found(query)][:k]


class Arrays(Counting):
    def retrieve(self, query: str, top_k: int = 5):
        return np.array([at for at, _ in self.found(query)][:top_k])


class Pairs(Counting):
    def retrieve(self, question, limit=3):
        return [(self.items[at].item_id, np.float32(score)) for at, score in self.found(question)][:limit]


class ItemsWithScores(Counting):
    def retrieve(self, texts, k):
        return [[(self.items[at], score) for at, score in self.found(query)][:k] for query in texts]


class ItemsAlone(Counting):
    def retrieve(self, q: str, k=None):
        return [self.items[at] for at, _ in self.found(q)]

    def index(self, docs):
        self.items = docs


class ScoresById(Counting):
    def retrieve(self, nlqs, path, k):
        return [{self.items[at].item_id: score for at, score in reversed(self.found(query))} for query in nlqs]


class Dicts(Counting):
    def retrieve(self, claim, k):
        return [{"docno": self.items[at].item_id, "score": score, "text": "?"} for at, score in self.found(claim)]


class Rows(Counting):
    def retrieve(self, queries, k):
        return Hits.from_lists([tuple(map(np.array, zip(*self.found(query), strict=True))) for query in queries])


class Generates(Counting):
    def retrieve(self, query, top_k=5, filters=None, **others):
        yield from ({"item": self.items[at], "score": score} for at, score in self.found(query))


class Texts(BaseRetriever):
    def index(self, corpus: list[str]):
        self.texts = corpus

    def retrieve(self, query, k):
        return counted(query, self.texts)[:k]


class DictsIn(BaseRetriever):
    def index(self, documents: list[dict], index_path=None):
        self.documents = documents

    def retrieve(self, query, k):
        return [(self.documents[at]["id"], score) for at, score in counted(query, [one["text"] for one in self.documents])]


FORMS = [Results, ItemsAlone, Positions, Arrays, Pairs, ItemsWithScores, ScoresById, Dicts, Rows, Generates, Texts, DictsIn]


@pytest.mark.parametrize("form", FORMS)
def test_every_plausible_form_finds_the_same(form, tmp_path):
    assert ids(search(form(), tmp_path)) == [["b", "a", "c"]]
    assert ids(search(form(), tmp_path, k=1)) == [["b"]]


def test_a_parameter_of_another_name_needs_a_default_and_an_annotation_says_how_queries_come(tmp_path):
    with pytest.raises(
        ConfigurationError, match=r"Odd\.retrieve\(q, k\) needs a parameter called 'query'|'q'.*give it a default"
    ):

        class Odd(Counting):
            def retrieve(self, q, k):
                return []

    with pytest.raises(ConfigurationError, match=r"not known what to pass as 'alpha'"):

        class Alpha(Counting):
            def retrieve(self, query, k, alpha):
                return []

    class Several(Counting):
        def retrieve(self, query: list[str], k):
            return [self.found(one) for one in query]

    assert ids(search(Several(), tmp_path)) == [["b", "a", "c"]]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, r"returned None for a query; return a list of hits, best first"),
        ("b", r"returned 'b' \(str\) for a query"),
        ([("b", 1.0), ("a", 2.0)], r"score 1 before one with 2; hits come best first.*negate distances"),
        ([("b", 1.0), "a"], r"only some hits have a score"),
        ([{"text": "krill"}], r"a dict without an id \(it has 'text'\)"),
        ([(1.0, "b")], r"returned 1.0 \(float\) as a hit"),
        ([("b", "high")], r"'high' \(str\) as a score"),
        (["krill krill krill"], r"'krill krill krill', which is the id of no item"),
        ([7], r"the position 7; index\(\) got 4 items"),
        ([("b", float("nan"))], r"gave the score nan"),
        (["b", "b"], r"an item twice"),
    ],
)
def test_what_is_no_list_of_hits_is_refused_with_what_was_returned(returned, said, tmp_path):
    class Returning(Counting):
        def retrieve(self, query, k):
            return returned

    with pytest.raises(EngineError, match=said):
        search(Returning(), tmp_path)


def test_lists_for_several_queries_are_counted(tmp_path):
    class OneList(Counting):
        def retrieve(self, queries, k):
            return [("a", 1.0), ("b", 0.5)]

    with pytest.raises(EngineError, match=r"2 lists for 1 queries; one for each is expected; call the parameter 'query'"):
        search(OneList(), tmp_path)


def test_an_error_of_its_own_says_what_it_was_called_with(tmp_path):
    class Failing(Counting):
        def retrieve(self, query, k):
            raise KeyError("postings")

    with pytest.raises(KeyError) as raised:
        search(Failing(), tmp_path)
    assert raised.value.__notes__ == ["raised by Failing.retrieve(query='krill snow', k=4)"]


def test_filters_are_exact_although_the_method_knows_none(tmp_path):
    searcher = Searcher([Results()])
    items = [{"id": str(at), "text": "krill " * (50 - at), "even": at % 2 == 0} for at in range(50)]
    searcher.index(items, tmp_path / "index")
    (hits,) = searcher.search("krill", k=5, where={"even": False})
    assert [hit.item.item_id for hit in hits] == ["1", "3", "5", "7", "9"]


def test_two_indexes_of_one_object_do_not_disturb_each_other(tmp_path):
    class Growing(BaseRetriever):
        def __init__(self) -> None:
            self.items = []

        def index(self, items, output_path):
            self.items.extend(items)

        def retrieve(self, query, k):
            return [(at, count) for at, count in counted(query, [item.content for item in self.items])][:k]

    retriever = Growing()
    first, second = Searcher([retriever]), Searcher([retriever])
    first.index(DOCUMENTS, tmp_path / "first")
    second.index({"z": "krill"}, tmp_path / "second")
    assert ids(first.search("krill")) == [["b", "a"]]
    assert ids(second.search("krill")) == [["z"]]


def test_another_process_indexes_again_what_is_only_in_the_object_and_says_so(tmp_path):
    module = tmp_path / "mine.py"
    module.write_text(
        "import sys\nfrom nlp_retrieval import Searcher\nfrom nlp_retrieval.core import BaseRetriever\n"
        "class Mine(BaseRetriever):\n"
        "    def index(self, items, output_path):\n        self.items = items\n"
        "    def retrieve(self, query, k):\n        return [i for i in self.items if query in i.content]\n"
        "if sys.argv[1] == 'index':\n    Searcher([Mine()]).index({'a': 'krill', 'b': 'snow'}, 'index')\n"
        "else:\n    print(Searcher([Mine()]).open('index').search('snow')[0][0].item.item_id)\n"
    )
    run = [sys.executable, str(module)]
    subprocess.run([*run, "index"], cwd=tmp_path, check=True)
    done = subprocess.run([*run, "search"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "b\n"
    assert "mine has indexed 2 items again" in done.stderr
    assert "define load(folder)" in done.stderr


def test_calling_the_base_class_is_an_error_that_says_so_and_leaves_nothing(tmp_path, monkeypatch):
    class Upwards(BaseRetriever):
        def index(self, items, output_path):
            super().index(items, output_path)

        def retrieve(self, query, k):
            return []

    class Around(BaseReranker):
        def rerank(self, nlqs, results, k):
            return super().rerank(nlqs, results, k)

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(EngineError, match=r"calls itself without end; if it calls super\(\)\.index\(\), leave that out"):
        search(Upwards(), tmp_path)
    with pytest.raises(EngineError, match=r"if it calls super\(\)\.rerank\(\)"):
        search(Results(), tmp_path, reranker=Around())
    gc.collect()
    assert [path.name for path in tmp_path.glob("nlp_retrieval-*") if any(path.iterdir())] == []


def test_load_without_anything_written_is_an_error_that_says_what_to_do(tmp_path):
    class Forgetful(Counting):
        def load(self, folder):
            self.items = []

        def retrieve(self, query, k):
            return []

    with pytest.raises(
        EngineError, match=r"index\(\) wrote nothing that load\(\) could open. Write files.*or leave load\(\) out"
    ):
        search(Forgetful(), tmp_path)


def test_items_that_are_added_are_indexed_with_all_others(tmp_path):
    searcher = Searcher([Results()])
    searcher.index(DOCUMENTS, tmp_path / "index")
    with pytest.warns(RetrievalWarning, match="because items were added to its index; compact"):
        searcher.add({"e": "krill krill krill krill"})
    assert ids(searcher.search("krill")) == [["e", "b", "a"]]


def test_a_benchmark_compares_them_like_others(tmp_path):
    gold = {"q1": {"b": 1}, "q2": {"c": 1}}
    run = compare_systems(
        [Results(), Bm25Retriever(), Searcher([Pairs()], reranker=ByLength())],
        {"q1": "krill", "q2": "fox"},
        gold,
        DOCUMENTS,
        folder=tmp_path,
        measures=["RR@10"],
    )
    assert [round(result.measures["mrr@10"], 2) for result in run.report.configurations] == [1.0, 1.0, 0.75]


class ByLength(BaseReranker):
    """Reorders, and leaves the scores."""

    def rerank(self, nlqs, results, k):
        return [sorted(hits, key=lambda hit: len(hit.item.content))[:k] for hits in results]


class Floats(BaseReranker):
    def rerank(self, query: str, results):
        return [-float(len(hit.item.content)) for hit in results]


class Order(BaseReranker):
    def rerank(self, query, documents, top_k):
        return np.argsort([len(hit.item.content) for hit in documents], kind="stable")


class NewScores(BaseReranker):
    def rerank(self, query, candidates, k=2):
        scored = [(hit.item, 1 / len(hit.item.content)) for hit in candidates]
        return sorted(scored, key=lambda pair: -pair[1])


@pytest.mark.parametrize("reranker", [ByLength, Floats, Order, NewScores])
def test_rerankers_keep_their_order_in_every_form(reranker, tmp_path):
    results = search(Results(), tmp_path, reranker=reranker())
    assert ids(results) == [["a", "b", "c"]]
    assert results[0][0].signals["results.rank"] == 2.0
    label = reranker().name
    assert [hit.score for hit in results[0]] == [hit.signals[f"{label}.score"] for hit in results[0]]
    assert (
        ids(reranker().rerank(["krill snow"], list(search(Results(), tmp_path)), 2)) == [["a", "b"]]
        if reranker is ByLength
        else True
    )


def test_a_reranker_may_leave_results_out_and_must_not_invent_any(tmp_path):
    class FirstAlone(BaseReranker):
        def rerank(self, query, results, k):
            return results[:1]

    class Inventing(BaseReranker):
        def rerank(self, query, results, k):
            return ["z"]

    assert ids(search(Results(), tmp_path, reranker=FirstAlone())) == [["b"]]
    with pytest.raises(EngineError, match=r"returned 'z', which is none of the 3 results that it got"):
        search(Results(), tmp_path, reranker=Inventing())


def test_a_loader_may_define_load_alone(tmp_path):
    class Dicts(BaseLoader):
        def load(self):
            return [{"id": "a", "title": "Krill", "text": "swarms", "year": 2020}]

    class Wrong(BaseLoader):
        def load(self):
            return [3]

    (item,) = Dicts().stream()
    assert (item.text, item.metadata["year"]) == ("Krill. swarms", 2020)
    assert Searcher([Bm25Retriever()]).index(Dicts(), tmp_path / "index").n_items == 1
    with pytest.raises(ItemError, match=r"item 1 is 3 \(int\); expected a SearchableItem, a dict"):
        list(Wrong().stream())


def test_a_class_that_defines_neither_is_still_abstract():
    class Neither(BaseRetriever):
        def build(self, items, folder): ...

        def retrieve(self, query, k): ...

    with pytest.raises(TypeError, match="abstract"):
        Neither()
    with pytest.raises(TypeError, match="abstract"):
        type("Empty", (BaseLoader,), {})()


def test_paths_come_as_text_where_the_annotation_says_so(tmp_path):
    class Joined(BaseRetriever):
        def index(self, items, output_path: str):
            Path(output_path + "/texts.txt").write_text("\n".join(item.content for item in items))

        def retrieve(self, query, output_path: str, k):
            return counted(query, Path(output_path + "/texts.txt").read_text().split("\n"))[:k]

    assert ids(search(Joined(), tmp_path)) == [["b", "a", "c"]]
    assert ids(Searcher([Joined()]).open(tmp_path / "index").search("fox")) == [["c"]]


def test_a_model_given_as_an_object_is_refused_because_an_index_could_not_be_known_by_it(tmp_path):
    class WithModel(Counting):
        def __init__(self, model):
            self.model = model

        def retrieve(self, query, k):
            return []

    with pytest.raises(ConfigurationError, match=r"type object is not JSON serializable: settings of components.*name or path"):
        search(WithModel(object()), tmp_path)
