"""HopRetriever: walks from any start, against ranking by hand, and after every change against a rebuild."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hashed_words import HashedWords
from plans import chunk
from soaking import mostly_soaked

from nlp_retrieval import Bm25Retriever, FaissRetriever, SearchableItem, Searcher
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.systems.policy.hop import retriever as room
from nlp_retrieval.systems.policy.hop.retriever import RELATION_WEIGHTS, HopRetriever

ENCODER = HashedWords(24)
DENSE, BM25 = FaissRetriever(ENCODER), Bm25Retriever()
WORDS = "solar wind coast farm tram river plan fund coal roof school storm leads because reduce power by 2030 5 % 12 GW".split()
QUERIES = ["solar plan of the coast", "because storm river", "tram fund 5 %", "What is new about coal in the later plan?"]


def passages(count: int, seed: int) -> list[SearchableItem]:
    """Random passages; many share sentences, some have no subject, no document or no text."""
    draw = random.Random(seed)
    sentences = [" ".join(draw.choices(WORDS, k=draw.randint(5, 9))).capitalize() + "." for _ in range(12)]
    items = []
    for row in range(count):
        metadata: dict[str, object] = {"country": draw.choice(["A", "B"]), "year": draw.choice([2019, 2020, 2021])}
        metadata |= {"document": draw.choice("xy"), "position": draw.randrange(9)}
        for key in draw.sample(sorted(metadata), draw.choice([0, 0, 0, 1, 4])):
            del metadata[key]
        content = " ".join(draw.choices(sentences, k=draw.choice([0, 1, 2, 3])))
        items.append(SearchableItem.model_validate({"item_id": f"s{seed}-{row}", "content": content, "metadata": metadata}))
    return items


def made(start: BaseRetriever = DENSE, **settings: object) -> HopRetriever:
    return HopRetriever(start, **settings)  # type: ignore[arg-type]


def relations_of(folder: Path, retriever: HopRetriever) -> set[tuple[object, ...]]:
    """The relations of an index by the ids of their passages, and what is told of each passage."""
    generation = open_generation(folder)
    opened = retriever.open(generation)
    names = generation.items.ids()
    found: set[tuple[object, ...]] = {
        (names[one.source], names[one.target], one.type, round(one.confidence, 5)) for one in opened.relations
    }
    shares = zip(names, opened._known.new.round(4).tolist(), opened._known.gone.round(4).tolist(), strict=True)
    return found | {(name, repr(new), repr(gone)) for name, new, gone in shares if name}


def found_by(searcher: Searcher, query: str, k: int = 50, **where: object) -> dict[str, float]:
    (hits,) = searcher.search([query], k, where or None)
    return {hit.item.item_id: hit.score for hit in hits}


@pytest.mark.parametrize("auto_compact", [False, True])
@pytest.mark.parametrize("seed", mostly_soaked([0, 1, 2]))
def test_passages_that_join_have_the_relations_of_an_index_built_at_once(seed: int, auto_compact: bool, tmp_path: Path) -> None:
    items = passages(40, seed)
    searcher = Searcher([made()])
    searcher.index(items[:16], tmp_path / "grown")
    draw, first = random.Random(seed), 16
    while first < len(items):
        last = first + draw.choice([1, 2, 5])
        searcher.add(items[first:last], auto_compact=auto_compact)
        first = last
    Searcher([made()]).index(items, tmp_path / "whole")
    assert len(searcher.opened.manifest.corpus.segments) > 1
    grown, whole = relations_of(tmp_path / "grown", made()), relations_of(tmp_path / "whole", made())
    assert grown == whole
    assert {one[2] for one in whole if len(one) == 4} == {"FOLLOWS", "TEMPORAL_FOLLOWS"}
    for query in QUERIES:
        at_once = Searcher([made()]).open(tmp_path / "whole")
        assert found_by(searcher, query) == pytest.approx(found_by(at_once, query))


@pytest.mark.parametrize("start", [DENSE, BM25])
@pytest.mark.parametrize("where", [{}, {"country": "A"}])
def test_scores_are_start_plus_strongest_path(
    start: BaseRetriever, where: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_RELATIONS_OF_A_PASSAGE", 1000)
    items = passages(40, 5)
    retriever = made(start, max_hops=2, changes="none")
    searcher, alone = Searcher([retriever]), Searcher([start])
    searcher.index(items, tmp_path)
    alone.open(tmp_path)
    opened = retriever.open(open_generation(tmp_path))
    ids = [item.item_id for item in items]
    allowed = {
        item.item_id for item in items if item.content and all(item.metadata.get(key) == value for key, value in where.items())
    }
    for query in QUERIES[:3]:
        started = found_by(alone, query, 50, **where)
        lowest = min(0.0, *started.values()) if len(started) < 40 else min(started.values())
        top = max(started.values())
        own = {name: (score - lowest) / (top - lowest) for name, score in started.items()}
        reached: dict[str, float] = {}
        starts = sorted(own, key=lambda name: (-started[name], ids.index(name)))[:10]
        steps: dict[str, list[tuple[str, float]]] = {}
        for one in opened.relations:
            worth = one.confidence * RELATION_WEIGHTS[one.type] * 0.9
            steps.setdefault(ids[one.source], []).append((ids[one.target], worth))
            steps.setdefault(ids[one.target], []).append((ids[one.source], worth))
        for origin in starts:
            for middle, first in steps.get(origin, []):
                if middle != origin and middle in allowed:
                    reached[middle] = max(reached.get(middle, 0.0), own[origin] * first)
                    for end, second in steps.get(middle, []):
                        if end != origin and end in allowed:
                            reached[end] = max(reached.get(end, 0.0), own[origin] * first * second)
        expected = {
            name: own.get(name, 0.0) + 0.3 * reached.get(name, 0.0)
            for name in own.keys() | {name for name, strength in reached.items() if strength > 0}
        }
        assert found_by(searcher, query, 50, **where) == pytest.approx(expected, abs=1e-5)


def test_a_reason_that_shares_no_word_with_the_question_is_reached_and_explained(tmp_path: Path) -> None:
    items = [
        chunk("a", "Wells in the delta turn salty and families move inland."),
        chunk("b", "This comes with tides that rise each spring.", position=1),
        chunk("c", "Trams get new seats.", position=7),
        chunk("d", "A tide gauge is read by the harbour master.", "Brenn", position="2"),
    ]
    searcher = Searcher([made(BM25)])
    searcher.index(items, tmp_path)
    question = "salty wells of the delta"
    assert list(found_by(searcher, question)) == ["a", "b", "c"]
    assert list(found_by(Searcher([BM25]).open(tmp_path), question)) == ["a"]
    (hits,) = searcher.search([question], 5)
    told = {hit.item.item_id: one["hop"] for hit, one in zip(hits, searcher.explain(question, hits), strict=True)}
    assert told["a"].origin.startswith("bm25 ranks it 1 of 1 (score ")
    (step,) = told["b"].steps
    assert (step.source.item_id, step.target.item_id, step.kind, step.along) == ("a", "b", "FOLLOWS", False)
    assert str(told["b"]).endswith("b: reached from a by FOLLOWS")
