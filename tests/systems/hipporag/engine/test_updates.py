"""A knowledge graph that is updated in place: what it holds and answers is that of an index built at once."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords
from hypothesis import given, settings
from hypothesis import strategies as st

from nlp_retrieval import RetrievalResult, Searcher
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.systems.hipporag import synonyms
from nlp_retrieval.systems.hipporag.graph import KnowledgeGraph
from nlp_retrieval.systems.hipporag.retriever import HippoRagRetriever
from systems.hipporag.stored_knowledge import openie_file, random_passage

ENCODER = HashedWords(32)
QUERIES = ["Where was Erik Hort born?", "What borders Rockland County", "Anna Lind painted Lake Mjosa", "harbour near Oslo"]
DRAW = random.Random(11)
PASSAGES = [random_passage(DRAW, f"d{number % 12}") for number in range(60)]
"""Five texts of each of twelve ids."""

pytestmark = pytest.mark.filterwarnings("ignore::nlp_retrieval.errors.RetrievalWarning")


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> str:
    return openie_file(tmp_path_factory.mktemp("knowledge") / "openie.json", PASSAGES)


def graph_of(path: Path, retriever: HippoRagRetriever) -> tuple[KnowledgeGraph, list[str]]:
    generation = open_generation(path)
    return retriever.open(generation)._graph_of_index, generation.items.ids()


def described(path: Path, retriever: HippoRagRetriever) -> dict[str, object]:
    """What a graph holds, in words, whatever its rows are."""
    graph, ids = graph_of(path, retriever)
    phrases = [graph.phrase(entity) for entity in range(graph.n_entities)]
    names = [*ids, *phrases]
    links = {
        kind: {
            frozenset((names[one], names[other])): weight
            for one, other, weight in zip(of.sources.tolist(), of.targets.tolist(), of.weights.tolist(), strict=True)
        }
        for kind, of in graph.links().items()
    }
    vectors = graph.entities.stack.at(graph.entities.places)
    np.testing.assert_array_equal(vectors, ENCODER.encode_passages(phrases).reshape(vectors.shape))
    triples = [graph.shown(triple) for triple in range(len(graph.ends))]
    stated = Counter((ids[row], triples[triple]) for row, triple in graph.statements.tolist())
    return {"entities": phrases, "triples": triples, "stated": stated, "unknown": graph.n_unknown, **links}


def same_answers(mine: Sequence[Sequence[RetrievalResult]], theirs: Sequence[Sequence[RetrievalResult]]) -> None:
    for one, other in zip(mine, theirs, strict=True):
        assert [hit.item.item_id for hit in one] == [hit.item.item_id for hit in other]
        assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], rel=1e-6)
        for here, there in zip(one, other, strict=True):
            assert here.signals == pytest.approx(there.signals, abs=1e-9)


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(st.integers(0, len(PASSAGES) - 1), min_size=1, max_size=6)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 11), min_size=1, max_size=4)),
        st.tuples(st.just("compact"), st.just([])),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=25)
@given(first=st.lists(st.integers(0, len(PASSAGES) - 1), min_size=1, max_size=8), changes=CHANGES, joined=st.booleans())
def test_after_every_change_graph_and_answers_are_those_of_an_index_built_at_once(
    knowledge: str, first: list[int], changes: list[tuple[str, list[int]]], joined: bool
) -> None:
    one = HippoRagRetriever(ENCODER, knowledge, linking="triples")
    live = {PASSAGES[number].item_id: PASSAGES[number] for number in first}
    with tempfile.TemporaryDirectory() as folder:
        index = Searcher([one])
        index.index(list(live.values()), Path(folder) / "updated")
        for number, (what, numbers) in enumerate(changes):
            if what == "put":
                new = {PASSAGES[place].item_id: PASSAGES[place] for place in numbers}
                live = {item_id: item for item_id, item in live.items() if item_id not in new} | new
                index.update(list(new.values()), auto_compact=joined)
            elif what == "delete":
                gone = sorted({f"d{place}" for place in numbers} & live.keys())[: len(live) - 1]
                live = {item_id: item for item_id, item in live.items() if item_id not in gone}
                index.delete(gone, auto_compact=joined)
            else:
                index.compact()
            at_once = Searcher([one])
            at_once.index(list(live.values()), Path(folder) / f"at-once-{number}")
            assert described(Path(folder) / "updated", one) == described(Path(folder) / f"at-once-{number}", one)
            same_answers(index.search(QUERIES, 20), at_once.search(QUERIES, 20))


@pytest.mark.parametrize("most", [3, 100])
def test_synonyms_are_those_of_all_pairs_whatever_the_blocks(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synonyms, "MOST_SYNONYMS", most)
    monkeypatch.setattr(synonyms, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(synonyms, "_OTHERS_AT_ONCE", 5)
    draw = np.random.default_rng(5)
    centres = draw.standard_normal((4, 8))
    vectors = (centres[draw.integers(4, size=60)] + 0.3 * draw.standard_normal((60, 8))).astype(np.float32)
    vectors[9] = 0.0
    hashes = np.sort(draw.choice(10**6, 60, replace=False)).astype(np.uint64)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    cosines = (vectors / np.maximum(lengths, 1e-12)) @ (vectors / np.maximum(lengths, 1e-12)).T
    np.fill_diagonal(cosines, -1.0)
    best = {
        (one, other)
        for one in range(60)
        for other in sorted(range(60), key=lambda n: (-cosines[one, n], n))[:most]
        if cosines[one, other] >= 0.8
    }
    expected = {frozenset(pair) for pair in best}
    at_once = synonyms.synonyms_of(vectors, hashes, [], 0.8)
    assert pairs_of(at_once, hashes) == expected
    later = synonyms.synonyms_of(vectors[40:], hashes[40:], [(vectors[:25], hashes[:25]), (vectors[25:40], hashes[25:40])], 0.8)
    before = synonyms.synonyms_of(vectors[:40], hashes[:40], [], 0.8)
    both = synonyms.Synonyms.joined([before, later])
    numbers = np.searchsorted(hashes, both.sources), np.searchsorted(hashes, both.targets)
    assert pairs_of(both.where(synonyms.best_synonyms(*numbers, both.similarities, hashes)), hashes) == expected
    by_pair = {frozenset(pair): cosines[min(pair), max(pair)] for pair in zip(*(n.tolist() for n in numbers), strict=True)}
    for one, other, cosine in zip(*(n.tolist() for n in numbers), both.similarities.tolist(), strict=True):
        assert cosine == pytest.approx(by_pair[frozenset((one, other))], abs=1e-6)


def pairs_of(found: synonyms.Synonyms, hashes: np.ndarray) -> set[frozenset[int]]:
    sources, targets = np.searchsorted(hashes, found.sources), np.searchsorted(hashes, found.targets)
    pairs = [frozenset(pair) for pair in zip(sources.tolist(), targets.tolist(), strict=True)]
    assert len(set(pairs)) == len(pairs), "a pair stands there twice"
    return set(pairs)
