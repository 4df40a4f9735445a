"""RM3 gives what Anserini gives, and what its formula says; filters and updates hold."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hashed_words import items_of
from soaking import mostly_soaked

from nlp_retrieval import Bm25Retriever, PyseriniRetriever, Searcher

WORDS = [f"word{number}" for number in range(400)]
COMMON = ["river", "bridge", "castle"]  # more than a tenth of the passages have them
N_ITEMS = 300

Scores = dict[int, float]


def some_texts() -> list[str]:
    """Short enough for Lucene to keep their exact lengths; words are rare as words of a language are."""
    draw = random.Random(3)
    weights = [1 / (place + 5) for place in range(len(WORDS))]
    return [
        " ".join(draw.choices(WORDS, weights, k=draw.randint(6, 30)) + draw.choices([*COMMON, "x", "a" * 21], k=2))
        for _ in range(N_ITEMS)
    ]


TEXTS = some_texts()
HELD = Counter(word for text in TEXTS for word in {*text.split()})
"""How many passages have each word."""
QUERIES = [" ".join(random.Random(seed).choices(WORDS[:60], k=1 + seed % 4)) for seed in range(25)] + ["river word7 word7"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("expansion") / "index"
    items = [item.model_copy(update={"metadata": {"part": row % 3}}) for row, item in enumerate(items_of(TEXTS))]
    Searcher([Bm25Retriever(), PyseriniRetriever(rm3=True)]).index(items, path)
    return path


def found(retriever: Bm25Retriever | PyseriniRetriever, folder: Path, query: str, k: int = N_ITEMS) -> Scores:
    return {int(hit.item.item_id[1:]): hit.score for hit in retriever.retrieve([[query]], folder, k)[0]}


@cache
def without_feedback(folder: Path, query: str) -> Scores:
    return found(Bm25Retriever(), folder, query)


def best(scores: Scores, n: int) -> list[int]:
    return sorted(scores, key=lambda row: (-scores[row], row))[:n]


@pytest.mark.parametrize("weight", mostly_soaked([0.5, 0.1, 0.8]))
def test_rm3_finds_and_scores_what_anserini_does(folder: Path, weight: float) -> None:
    """All terms are taken: Anserini cuts ties in the order of a hash table. It finds a weight of 0, which says nothing, too."""
    ours = Bm25Retriever(feedback="rm3", fb_docs=5, fb_terms=1000, original_query_weight=weight)
    theirs = PyseriniRetriever(rm3=True, rm3_documents=5, rm3_terms=1000, rm3_query_weight=weight)
    for query in QUERIES:
        assert found(ours, folder, query) == pytest.approx(found(theirs, folder, query), rel=1e-4), query


def rm3_by_hand(query: Counter[str], first: Scores, documents: int, terms: int, weight: float) -> dict[str, float]:
    model: Counter[str] = Counter()
    for row in best(first, documents):
        counts = Counter(word for word in TEXTS[row].split() if 2 <= len(word) <= 20 and HELD[word] <= 0.1 * N_ITEMS)
        kept = sorted(counts, key=lambda word: (-counts[word], word))[:terms]
        for word in kept:
            model[word] += counts[word] / sum(counts[other] for other in kept) * first[row]
    kept = sorted(model, key=lambda word: (-round(model[word], 12), word))[:terms]
    total = sum(model[word] for word in kept)
    return {
        word: weight * query[word] / query.total() + (1 - weight) * (model[word] / total if word in kept else 0)
        for word in {*kept, *query}
    }


Rule = Callable[[Counter[str], Scores], dict[str, float]]


RULES = pytest.mark.parametrize(
    ("retriever", "rule"),
    [
        pytest.param(
            Bm25Retriever(feedback="rm3"),
            lambda query, first: rm3_by_hand(query, first, 10, 10, 0.5),
            marks=pytest.mark.soak,
        ),
        (
            Bm25Retriever(feedback="rm3", fb_docs=2, fb_terms=4, original_query_weight=0.2, backend="numba"),
            lambda query, first: rm3_by_hand(query, first, 2, 4, 0.2),
        ),
    ],
    ids=["rm3", "rm3 of two"],
)


@RULES
def test_a_query_is_expanded_as_the_formula_says(folder: Path, retriever: Bm25Retriever, rule: Rule) -> None:
    for query in QUERIES:
        words = Counter(query.split())
        expanded = rule(words, without_feedback(folder, query))
        expected: Counter[int] = Counter()
        for word, weight in expanded.items():
            if weight:
                expected.update({row: weight * score for row, score in without_feedback(folder, word).items()})
        assert found(retriever, folder, query) == pytest.approx(dict(expected), rel=1e-5), query
