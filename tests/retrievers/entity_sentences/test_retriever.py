"""EntitySentencesRetriever against a search over dictionaries and a dense matrix, and after every change against a rebuild."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords
from linked_pages import page

from nlp_retrieval import Bm25sRetriever, EntitySentencesRetriever, FaissRetriever, RetrievalWarning, SearchableItem, Searcher
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders import passages as passage_encoding
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.text.mentions import entities_by_rules
from nlp_retrieval.text.sentences import sentence_spans

ENCODER = HashedWords(24)
BM25 = Bm25sRetriever()
NAMES = ["Ada Quill", "Port Averly", "Benedict Crane", "Zora Helm", "Mount Tessel", "Ivo Lark", "U.S."]
FILLER = "orchard velvet copper meadow lantern gravel pepper saddle".split()
QUERIES = [
    "Who saw Ada Quill near the orchard?",
    "velvet lantern of Port Averly and Zora Helm",
    "copper meadow",
    "zora helm pepper",
]


def passages(count: int, seed: int) -> list[SearchableItem]:
    """Random passages of up to four sentences; some name nothing, some are empty, half have a title."""
    draw = random.Random(seed)
    found = []
    for row in range(count):
        sentences = []
        for _ in range(draw.choice([0, 1, 2, 2, 4])):
            named = draw.sample(NAMES, draw.choice([0, 1, 1, 2]))
            sentences.append(" and ".join([" ".join(draw.choices(FILLER, k=draw.randint(1, 4))), *named]) + ".")
        found.append(page(f"d{row}", " Then ".join(sentences), draw.choice(["", "", *NAMES[:5]])))
    return found


def made(seeds: list[BaseRetriever] | None = None, **settings: object) -> EntitySentencesRetriever:
    return EntitySentencesRetriever(seeds or [BM25], **({"encoder": ENCODER, "threshold": 0.05} | settings))  # type: ignore[arg-type]


def found_by(searcher: Searcher, query: str, k: int = 50) -> list[tuple[str, float]]:
    (hits,) = searcher.search([query], k)
    return [(hit.item.item_id, hit.score) for hit in hits]


class ByHand:
    """The whole search over lists and dictionaries, with an exact solution for the walk."""

    def __init__(self, items: list[SearchableItem], retriever: EntitySentencesRetriever) -> None:
        self.items, self.retriever = items, retriever
        texts = [[item.content[a:b] for a, b in sentence_spans(item.content)] or [item.title] for item in items]
        self.sentences = [(row, text) for row, of in enumerate(texts) for text in of]
        self.names = [
            (entities_by_rules(text) if items[row].content.strip() else set()) | entities_by_rules(items[row].title)
            for row, text in self.sentences
        ]
        self.entities = sorted(set().union(*self.names))
        self.naming = {
            name: {row for (row, _), of in zip(self.sentences, self.names, strict=True) if name in of} for name in self.entities
        }

    def search(self, query: str, named: set[str], hits: list[tuple[int, float]]) -> dict[str, float]:
        one = self.retriever
        vector = ENCODER.encode_queries([query])[0]
        similar = [float(ENCODER.encode_passages([text])[0] @ vector) for _, text in self.sentences]
        values = dict.fromkeys(named & set(self.entities), 1.0)
        for _ in range(one.rounds):
            passed: dict[str, float] = {}
            for names, similarity in zip(self.names, similar, strict=True):
                strength = max((values.get(name, 0.0) for name in names), default=0.0) * max(similarity, 0.0)
                for name in names if strength >= one.threshold else ():
                    passed[name] = max(passed.get(name, 0.0), strength)
            values = {name: max(values.get(name, 0.0), passed.get(name, 0.0)) for name in values.keys() | passed.keys()}
        n_items, n_nodes = len(self.items), len(self.items) + len(self.entities)
        restart = np.zeros(n_nodes)
        lowest = 0.0  # fewer hits than the depth
        weights = np.array(
            [max(((score - lowest) / (max(s for _, s in hits) - lowest)) ** one.seed_power, 1e-7) for _, score in hits]
        )
        for (row, _), weight in zip(hits, weights / (weights.sum() or 1.0), strict=True):
            restart[row] += weight
        for name, value in values.items():
            restart[n_items + self.entities.index(name)] += one.entity_weight * value / sum(values.values())
        if restart.sum() == 0:
            return {}
        n_findable = sum(any(map(str.isalnum, item.text)) for item in self.items)
        steps = np.zeros((n_nodes, n_nodes))
        for number, name in enumerate(self.entities):
            for row in self.naming[name]:
                steps[row, n_items + number] = steps[n_items + number, row] = math.log(1 + n_findable / len(self.naming[name]))
        steps = np.divide(steps, steps.sum(1, keepdims=True), out=np.zeros_like(steps), where=steps.sum(1, keepdims=True) > 0)
        walk = np.linalg.solve(np.eye(n_nodes) - one.damping * steps.T, (1 - one.damping) * restart / restart.sum())
        walk /= walk.sum()
        best = [max(s for (of, _), s in zip(self.sentences, similar, strict=True) if of == row) for row in range(n_items)]
        return {
            item.item_id: math.log(walk[row]) + one.sentence_weight * best[row]
            for row, item in enumerate(self.items)
            if walk[row] > 1e-5
        }


NAMED = [{"ada quill"}, {"port averly", "zora helm"}, set(), {"zora helm"}]


@pytest.mark.filterwarnings("ignore::nlp_retrieval.errors.RetrievalWarning")
@pytest.mark.parametrize(
    "settings", [{}, {"rounds": 0, "entity_weight": 0.5}, {"rounds": 4, "damping": 0.8, "sentence_weight": 0.0}]
)
def test_scores_are_those_of_a_search_by_hand(settings: dict[str, object], tmp_path: Path) -> None:
    for seed in range(4):
        items = passages(20, seed)
        retriever = made(None, epsilon=1e-9, pool=100, **settings)
        searcher, seeds = Searcher([retriever]), Searcher([BM25])
        searcher.index(items, tmp_path / str(seed))
        seeds.open(tmp_path / str(seed))
        by_hand = ByHand(items, retriever)
        for query, named in zip(QUERIES, NAMED, strict=True):
            (hits,) = seeds.search([query], 50)
            expected = by_hand.search(query, named, [(int(hit.item.item_id[1:]), hit.score) for hit in hits])
            found = dict(found_by(searcher, query))
            assert {item_id: found[item_id] for item_id in expected} == pytest.approx(expected, abs=2e-3)


@pytest.mark.filterwarnings("ignore::nlp_retrieval.errors.RetrievalWarning")
@pytest.mark.parametrize("auto_compact", [False, True])
def test_after_every_change_it_finds_what_a_rebuild_finds(auto_compact: bool, tmp_path: Path, effort: int) -> None:
    seeds: list[BaseRetriever] = [FaissRetriever(ENCODER)]
    n_changes = 0
    for seed in range(2 * effort):
        draw = random.Random(seed)
        live = passages([20, 3][seed % 2], seed)
        index = Searcher([made(seeds)])
        index.index(live, tmp_path / f"index-{seed}")
        for change in range(5):
            if len(live) > 2 and draw.random() < 0.4:
                gone = {item.item_id for item in draw.sample(live, draw.randrange(1, min(len(live), 4)))}
                index.delete(sorted(gone), auto_compact=auto_compact)
                live = [item for item in live if item.item_id not in gone]
            else:
                pool = passages(30, 100 * seed + change)
                new = draw.sample(pool, draw.choice([1, 3]))
                index.update(new, auto_compact=auto_compact)
                ids = {item.item_id for item in new}
                live = [*(item for item in live if item.item_id not in ids), *new]
            n_changes += 1
            at_once = Searcher([made(seeds)])
            at_once.index(live, tmp_path / f"plain-{seed}-{change}")
            for query in QUERIES:
                found, expected = found_by(index, query), found_by(at_once, query)
                assert dict(found) == pytest.approx(dict(expected), abs=2e-5)
        index.compact()
        for query in QUERIES:
            assert dict(found_by(index, query)) == pytest.approx(dict(found_by(at_once, query)), abs=2e-5)
    assert n_changes


CHAIN = [
    page("a", "Lothair II was married to Teutberga. He died in Piacenza."),
    page("b", "Ermengarde of Tours was the mother of Lothair II. She wed in Thionville."),
    page("c", "Ermengarde of Tours died on 20 March 851 near Strasbourg."),
    page("d", "nothing that helps"),
    page("e", "東京は大きい。"),
    page("f", ""),
]
QUESTION = "When did the mother of Lothair II die?"


def test_a_name_leads_over_a_sentence_to_a_passage_that_shares_no_word_with_the_query(tmp_path: Path) -> None:
    searcher = Searcher([made()])
    searcher.index(CHAIN, tmp_path)
    assert [item_id for item_id, _ in found_by(searcher, QUESTION)] == ["b", "a", "c"]
    without = Searcher([made(rounds=0, entity_weight=0)]).open(tmp_path)
    assert dict(found_by(searcher, QUESTION))["c"] > dict(found_by(without, QUESTION))["c"]


def test_the_explanation_tells_which_sentences_led_there(tmp_path: Path) -> None:
    searcher = Searcher([made()])
    searcher.index(CHAIN, tmp_path)
    (hits,) = searcher.search([QUESTION], 5)
    told = {one["entity_sentences"].item.item_id: one["entity_sentences"] for one in searcher.explain(QUESTION, hits)}
    assert told["a"].origin == "the query names 'lothair ii', and its text says: Lothair II was married to Teutberga."
    assert told["b"].origin.startswith("bm25s ranks it 1 of 2 (score ")
    assert told["a"].steps == told["b"].steps == ()
    (step,) = told["c"].steps
    assert told["c"].origin == (
        "the query names 'lothair ii', and its text says: Ermengarde of Tours was the mother of Lothair II."
    )
    assert (step.source.item_id, step.target.item_id, step.kind, step.along) == ("b", "c", "entity_sentences", False)
    assert step.marked("[", "]") == "[Ermengarde of Tours] died on 20 March 851 near Strasbourg."


def test_a_title_that_another_passage_names_is_explained_by_that_passage(tmp_path: Path) -> None:
    searcher = Searcher([made()])
    searcher.index(
        [page("a", "A novelist described the lighthouse of Port Averly."), page("b", "known for its tea", "Port Averly")],
        tmp_path,
    )
    (hits,) = searcher.search(["novelist lighthouse"], 5)
    told = {
        one["entity_sentences"].item.item_id: one["entity_sentences"] for one in searcher.explain("novelist lighthouse", hits)
    }
    (step,) = told["b"].steps
    assert step.along
    assert step.marked("[", "]") == "A novelist described the lighthouse of [Port Averly]."


@pytest.mark.filterwarnings("ignore:.*found nothing for:nlp_retrieval.errors.RetrievalWarning")
@pytest.mark.parametrize("texts", [["", " "], ["nothing here", "nor there"], ["東京は大きい。京都も。", "هذا نص عن لا شيء"]])
def test_without_entities_the_seeds_decide_and_a_warning_says_so(texts: list[str], tmp_path: Path) -> None:
    items = [page(f"d{row}", text) for row, text in enumerate(texts)]
    searcher = Searcher([made([FaissRetriever(ENCODER)])])
    with pytest.warns(RetrievalWarning, match="found no entities"):
        searcher.index(items, tmp_path)
    dense = Searcher([FaissRetriever(ENCODER)]).open(tmp_path)
    for query in ("nothing", "Ada Quill"):
        assert {item_id for item_id, _ in found_by(searcher, query)} == {item_id for item_id, _ in found_by(dense, query)}


def test_a_huge_passage_is_one_of_many_sentences(tmp_path: Path) -> None:
    names = " ".join(f"Name{chr(97 + n % 26)}{chr(97 + n // 26 % 26)} met Ada Quill near the orchard." for n in range(3_000))
    searcher = Searcher([made()])
    searcher.index([page("a", names), page("b", "Nameab was a lighthouse."), page("c", "pepper")], tmp_path)
    assert [item_id for item_id, _ in found_by(searcher, "Who is Ada Quill?")][:2] == ["a", "b"]


def test_another_encoder_or_another_way_to_find_entities_is_another_index_and_search_settings_are_not(tmp_path: Path) -> None:
    identities = [one.identity for one in (made(), made(rounds=1, pool=5, threshold=0.5), made([FaissRetriever(ENCODER)]))]
    assert identities[0] == identities[1] == identities[2]
    assert made(encoder=HashedWords(24, seed=1)).identity != identities[0]
    assert EntitySentencesRetriever([BM25, FaissRetriever(ENCODER)]).encoder == ENCODER


@pytest.mark.filterwarnings("ignore::nlp_retrieval.errors.RetrievalWarning")
def test_joining_segments_encodes_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher = Searcher([made()])
    searcher.index(passages(10, 0), tmp_path)
    searcher.add([page("x", "Ada Quill left. Ivo Lark stayed.")], auto_compact=False)
    expected = found_by(searcher, QUERIES[0])

    def encoded(*_: object) -> None:
        raise AssertionError("the vectors are there")

    monkeypatch.setattr(passage_encoding, "encoded_passages", encoded)
    searcher.compact()
    assert dict(found_by(searcher, QUERIES[0])) == pytest.approx(dict(expected), abs=2e-5)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("rounds", -1), ("threshold", 0), ("damping", 1), ("seeds", []), ("mentions", ""), ("sentence_weight", -1), ("depth", 0)],
)
def test_parameters_out_of_range_are_refused(parameter: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=parameter):
        EntitySentencesRetriever(**({"seeds": [BM25]} | {parameter: value}))  # type: ignore[arg-type]
