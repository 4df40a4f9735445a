"""Components that are sound but for one thing each; the kit has to find it. One for each class of rules."""

from __future__ import annotations

import json
import pickle
import re
import sys

import numpy as np
from hashed_words import HashedWords

from nlp_retrieval import Gold, Query, SearchableItem
from nlp_retrieval.core import (
    Answer,
    BaseFusion,
    BaseLoader,
    BaseQueryLoader,
    BaseReranker,
    BaseRetriever,
    BaseUserQueryProcessor,
    Hits,
)
from nlp_retrieval.core.candidates import RRF_K
from nlp_retrieval.lm.answering import BaseAnswerer, title_of
from nlp_retrieval.testing import (
    AnswererRules,
    EncoderRules,
    FusionRules,
    LoaderRules,
    ProcessorRules,
    QueryLoaderRules,
    RerankerRules,
    RetrieverRules,
)

from .breaking import breaks, broken_in

_WORD = re.compile(r"\w+")

# settings, constructors and registration, of a processor


class Quiet(BaseUserQueryProcessor):
    """Searches for the query as it is; keeps every rule.

    Args:
        lower: whether in lower case.
    """

    def __init__(self, lower: bool = False) -> None:
        self.lower = lower

    def process(self, nlqs):
        return [[nlq.lower() if self.lower else nlq] for nlq in nlqs]


@breaks(ProcessorRules, "test_the_config_is_json_and_builds_an_equal_component", "no parameter 'loud'")
class ConfiguredByMore(Quiet):
    @property
    def config(self):
        return super().config | {"loud": True}


@breaks(ProcessorRules, "test_the_registry_name_stands_for_this_class", "no processor called 'nobody'")
class Unregistered(Quiet):
    pass


Unregistered.name = "nobody"


# batches, of a processor


@breaks(ProcessorRules, "test_an_answer_does_not_depend_on_the_rest_of_the_batch")
class NumbersItsQueries(Quiet):
    def process(self, nlqs):
        return [[nlq, f"{nlq} {number}"] if number else [nlq] for number, nlq in enumerate(nlqs)]


# answerers


@breaks(AnswererRules, "test_citations_are_of_passages_that_were_given", "(7)")
class CitesBeyondTheEnd(BaseAnswerer):
    """Answers with the first word of the first passage that has one.

    Args:
        passages: how many it reads.
    """

    def __init__(self, passages: int = 3) -> None:
        self.passages = passages

    def answer_batch(self, questions, passages):
        items = [next((item for item in found if item.content.split()), None) for found in passages]
        return [self.of(item) if item else Answer(text="") for item in items]

    def of(self, item):
        return Answer(text=item.content.split()[0], passages=[item.item_id], facts=[(title_of(item), 0), ("(7)", 7)])


# encoders


@breaks(EncoderRules, "test_every_text_gets_one_finite_vector", "float64")
class Doubles(HashedWords):
    def encode_passages(self, passages):
        return super().encode_passages(passages).astype(np.float64)


# fusions


class Sum(BaseFusion):
    """Sum of reciprocal ranks; keeps every rule."""

    def combine(self, pool):
        return np.nansum(1.0 / (RRF_K + pool.ranks), axis=1)


@breaks(FusionRules, "test_every_candidate_comes_once_the_best_first_and_ties_by_row", "both found some")
class FoundByBoth(Sum):
    def fuse(self, batches):
        fused = super().fuse(batches)
        both = np.isfinite(fused.signals["one.score"]) & np.isfinite(fused.signals["other.score"])
        offsets = np.concatenate([[0], np.cumsum(np.bincount(fused.owner[both], minlength=fused.n_lists))])
        return fused.take(np.flatnonzero(both), offsets)


# loaders


class Few(BaseLoader):
    """Four items; keeps every rule."""

    def stream(self):
        yield from self.items()

    def items(self):
        return [SearchableItem(item_id=f"d{n}", content=f"text {n}") for n in range(4)]


@breaks(LoaderRules, "test_ids_are_unique_and_not_empty", "'d1' is the id of items 2 and 5")
class RepeatsAnId(Few):
    def items(self):
        return [*super().items(), SearchableItem(item_id="d1", content="another")]


@breaks(LoaderRules, "test_an_abandoned_stream_leaves_nothing_open", "unclosed")
class LeavesItOpen(Few):
    def stream(self):
        self.file = open(__file__)  # noqa: PTH123, SIM115
        for number, line in enumerate(self.file):
            yield SearchableItem(item_id=str(number), content=line)

    def __del__(self):
        pass


@breaks(QueryLoaderRules, "test_gold_names_items_of_the_source", "d9")
class GoldElsewhere(Few, BaseQueryLoader):
    def queries(self):
        return [Query(query_id=name, text="?") for name in "ab"]

    def gold(self):
        return [Gold(query_id=query.query_id, relevance={"d9": 1}) for query in self.queries()]


# rerankers


class Shared(BaseReranker):
    """Scores an item by the letters that it shares with the query; keeps every rule."""

    def score_pairs(self, queries, items):
        return {"score": np.array([self.score(query, item) for query, item in zip(queries, items, strict=True)])}

    def score(self, query, item):
        return len(set(query) & set(item.text)) / (1 + len(set(item.text)))


class Rearranged(Shared):
    """Changes what comes back."""

    def rerank(self, nlqs, results, k):
        return [self.change(one) for one in super().rerank(nlqs, results, k)]


@breaks(RerankerRules, "test_signals_are_kept_and_the_own_score_joins_them", "retriever.rank")
class ForgetsSignals(Rearranged):
    def change(self, one):
        own = f"{self.name}.score"
        return [hit.model_copy(update={"signals": {own: hit.signals[own]}}) for hit in one]


@breaks(RerankerRules, "test_a_score_does_not_depend_on_the_other_candidates", "fewer")
class DividesByTheHighest(Shared):
    def score_pairs(self, queries, items):
        columns = super().score_pairs(queries, items)
        return {"score": columns["score"] / max(map(len, (item.text for item in items)))}


# retrievers: answers


class Words(BaseRetriever):
    """Scores an item by the share of the query's words that it holds; keeps every rule.

    Args:
        shortest: shorter words are not indexed.
        factor: on the scores.
    """

    name = "words"
    search_only = frozenset({"factor"})

    def __init__(self, shortest: int = 4, factor: float = 1.0) -> None:
        self.shortest = shortest
        self.factor = factor

    def build(self, items, folder):
        words = [sorted(self.words(text)) for texts in items.texts(100) for text in texts]
        (folder / "words.json").write_text(json.dumps(words), "utf-8")

    def load(self, folder):
        self.found = [set(words) for words in json.loads((folder / "words.json").read_text("utf-8"))]

    def search_batch(self, queries, k, allowed):
        return Hits.from_lists([self.best(self.scores(self.words(query)), k, allowed) for query in queries])

    def ignored(self, query):
        return None if self.words(query) else f"words that are too short for shortest={self.shortest}; shortest=1 keeps them"

    def words(self, text):
        return {word for word in _WORD.findall(text.lower()) if len(word) >= self.shortest or not word.isascii()}

    def scores(self, wanted):
        return np.array([self.factor * len(wanted & found) / (len(wanted) or 1) for found in self.found])

    def best(self, scores, k, allowed):
        rows = np.flatnonzero((scores > 0) & (True if allowed is None else allowed))
        rows = rows[np.lexsort((rows, -scores[rows]))][:k]
        return rows, scores[rows]


# answers


@breaks(RetrieverRules, "test_a_list_holds_at_most_k_items_once_each_best_first_and_ties_by_row", "k=1")
class TiesAtTheCut(Words):
    def best(self, scores, k, allowed):
        rows = np.flatnonzero((scores > 0) & (True if allowed is None else allowed))
        rows = rows[np.lexsort((-rows, -scores[rows]))][:k]
        return rows, scores[rows]


# filters


@breaks(RetrieverRules, "test_k_results_come_back_wherever_k_match", "k=1")
class FiltersAfterTheCut(Words):
    def best(self, scores, k, allowed):
        rows, found = super().best(scores, k, None)
        keep = slice(None) if allowed is None else allowed[rows]
        return rows[keep], found[keep]


# the index


@breaks(RetrieverRules, "test_the_index_is_a_flat_folder_of_files_that_run_no_code", "pickle")
class Pickles(Words):
    def build(self, items, folder):
        super().build(items, folder)
        (folder / "words.bin").write_bytes(pickle.dumps(["words"]))


@breaks(RetrieverRules, "test_the_index_is_a_flat_folder_of_files_that_run_no_code", "an array of objects")
class PicklesWithinAnArchive(Words):
    def build(self, items, folder):
        super().build(items, folder)
        np.savez(folder / "words.npz", words=np.array(["words", None], object))


# updates


@breaks(RetrieverRules, "test_what_was_deleted_is_gone_what_was_added_found_and_what_was_updated_new")
class FindsTheDeleted(Words):
    def find(self, queries, k, allowed=None):
        self._live = None
        return super().find(queries, k)


@breaks(RetrieverRules, "test_items_that_are_alike_score_alike_in_every_segment", "twin-c")
class ScaledByTheSegment(Words):
    def scores(self, wanted):
        return super().scores(wanted) / len(self.found)


BROKEN = broken_in(sys.modules[__name__])
