"""Activation over sentences, against rounds over dictionaries, and the columns of sentences, against lists."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.entity_sentences.graph.activation import activate
from nlp_retrieval.retrievers.entity_sentences.graph.named_sentences import NamedSentences
from nlp_retrieval.retrievers.entity_sentences.graph.sentence_graph import SentenceGraph
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import hash_of
from nlp_retrieval.text.sentence_entities import PassageEntities

NAMES = "anna boris clara dmitri elena fjodor".split()
PASSAGES = st.lists(st.lists(st.frozensets(st.sampled_from(NAMES), max_size=3), max_size=3), min_size=1, max_size=6)


def sentences_of(passages: list[list[frozenset[str]]]) -> NamedSentences:
    spans = tuple((0, 0) for _ in range(10))
    return NamedSentences.of(PassageEntities(frozenset(), spans[: len(one)], tuple(one)) for one in passages)


def graph_of(passages: list[list[frozenset[str]]]) -> SentenceGraph:
    return SentenceGraph.of(sentences_of(passages), len(passages))


def by_hand(
    passages: list[list[frozenset[str]]], named: set[str], similar: list[float], rounds: int, threshold: float, most: int
) -> dict[str, float]:
    """The activation of each name; sentences are numbered as in the graph, where every passage has at least one."""
    sentences = [names for one in passages for names in (one or [frozenset()])]
    count = {name: sum(any(name in names for names in one) for one in passages) for name in NAMES}
    values = {name: 1.0 for name in named if 0 < count[name] <= most}
    for _ in range(rounds):
        passed: dict[str, float] = {}
        for names, similarity in zip(sentences, similar, strict=False):
            strength = max([values.get(name, 0.0) for name in names], default=0.0) * min(max(similarity, 0.0), 1.0)
            for name in names:
                if strength >= threshold and count[name] <= most:
                    passed[name] = max(passed.get(name, 0.0), strength)
        values = {name: max(values.get(name, 0.0), passed.get(name, 0.0)) for name in values.keys() | passed.keys()}
    return values


@given(
    PASSAGES,
    st.sets(st.sampled_from(NAMES), max_size=3),
    st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 3.0]), min_size=18, max_size=18),
    st.integers(0, 4),
    st.sampled_from([0.05, 0.3, 1.0]),
    st.integers(1, 6),
)
def test_activations_are_those_of_rounds_over_all_sentences(
    passages: list[list[frozenset[str]]], named: set[str], similar: list[float], rounds: int, threshold: float, most: int
) -> None:
    graph = graph_of(passages)
    numbers = graph.find(sorted(named))
    asked: list[int] = []

    def similarities(sentences: np.ndarray) -> np.ndarray:
        asked.extend(sentences.tolist())
        return np.array([similar[sentence] for sentence in sentences.tolist()])

    found = activate(graph, numbers[numbers >= 0], similarities, rounds, threshold, most)
    names = {hash_of(name): name for name in NAMES}
    values = {names[int(graph.hashes[entity])]: value for entity, value in zip(found.entities, found.values, strict=True)}
    assert values == pytest.approx(by_hand(passages, named, similar, rounds, threshold, most))
    assert found.entities.tolist() == sorted(found.entities.tolist())
    naming = [names for one in passages for names in (one or [frozenset()])]
    assert all(naming[sentence] & values.keys() for sentence in asked)
    for entity, value in zip(found.entities.tolist(), found.values.tolist(), strict=True):
        bridges = found.bridges_to(entity)
        product = np.prod([min(max(similar[sentence], 0.0), 1.0) for sentence, _ in bridges])
        assert len(bridges) <= max(rounds, 0)
        assert value <= product + 1e-12
        for (sentence, before), after in zip(bridges, [*(one for _, one in bridges[1:]), entity], strict=False):
            assert {names[int(graph.hashes[one])] for one in (before, after)} <= naming[sentence]


def test_a_name_of_too_many_passages_is_neither_led_to_nor_from() -> None:
    anna, boris, clara = (frozenset([name]) for name in NAMES[:3])
    passages = [[anna | boris], [boris | clara], [boris]]
    graph = graph_of(passages)
    found = activate(graph, graph.find(["anna"]), lambda sentences: np.ones(len(sentences)), 3, 0.1, 2)
    assert found.entities.tolist() == graph.find(["anna"]).tolist()
    everything = activate(graph, graph.find(["anna"]), lambda sentences: np.ones(len(sentences)), 3, 0.1, 3)
    assert sorted(everything.entities.tolist()) == sorted(graph.find(["anna", "boris", "clara"]).tolist())


@given(PASSAGES, st.data())
def test_segments_opened_as_one_hold_what_one_segment_of_the_live_passages_names(
    passages: list[list[frozenset[str]]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(passages)))
    live = np.array(data.draw(st.lists(st.booleans(), min_size=len(passages), max_size=len(passages))), bool)
    with TemporaryDirectory() as folder:
        segments = []
        for number, rows in enumerate((slice(0, cut), slice(cut, len(passages)))):
            path = Path(folder) / str(number)
            path.mkdir()
            sentences_of(passages[rows]).write(path)
            segments.append(SegmentFolder(path, rows.start, rows.stop, live[rows]))
        together = NamedSentences.open_all(segments)
    kept = together.only(np.flatnonzero(live))
    plain = sentences_of([one for one, is_live in zip(passages, live, strict=True) if is_live])
    assert [column.tolist() for column in (kept.sentences, kept.names, kept.hashes)] == [
        column.tolist() for column in (plain.sentences, plain.names, plain.hashes)
    ]
    gone = together.only(np.flatnonzero(~live))
    assert len(gone.hashes) == 0
    assert len(gone.names) - 1 == sum(max(len(one), 1) for one, is_live in zip(passages, live, strict=True) if not is_live)


def test_files_that_contradict_one_another_are_refused(tmp_path: Path) -> None:
    sentences_of([[frozenset(["anna"])], [frozenset(["boris"]), frozenset()]]).write(tmp_path)
    assert len(NamedSentences.open(tmp_path, 2).names) == 4
    with pytest.raises(IndexDamagedError):
        NamedSentences.open(tmp_path, 3)
    for name, wrong in (("sentence_offsets", [0, 0, 3]), ("sentence_offsets", [0, 1, 4]), ("name_offsets", [0, 1, 3, 2])):
        before = np.load(tmp_path / f"{name}.npy")
        np.save(tmp_path / f"{name}.npy", np.array(wrong, np.int64))
        with pytest.raises(IndexDamagedError, match=name):
            NamedSentences.open(tmp_path, 2)
        np.save(tmp_path / f"{name}.npy", before)


def test_the_longest_known_names_of_a_query_count_from_left_to_right() -> None:
    known = ["new york", "new york city", "glass", "york", "the", "us", "iron man"]
    graph = graph_of([[frozenset([name])] for name in known])

    def named(query: str) -> list[str]:
        return list(graph.named_by(query).texts)

    assert named("Is New York City of Glass?") == ["new york city", "glass"]
    assert named("Was New York older than New York?") == ["new york"]
    assert named("new york city, tell us the iron man") == ["new york city", "iron man"]
    assert named("Where is the US embassy in York") == ["us", "york"]
    assert named("The") == named("") == named("nothing of that") == []
    assert named("Actor Iron Man Smith") == ["iron man"]
