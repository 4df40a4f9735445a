"""Examples are the same in every process, hold families apart, and show a model the windows that decide."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair, examples_of, held_out_families, nearest_windows
from nlp_retrieval.systems.evidence.verifiers.perturbations import with_perturbations

SCRIPT = """
import hashlib, random
from nlp_retrieval.systems.evidence.verifiers.perturbations import with_perturbations
from nlp_retrieval.systems.evidence.verifiers.pairs import examples_of
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair
words = "bridge harbour tower Kenya mill lamp 1932 road river Norway stone garden winter 40 market".split()
words += [f"word{number}" for number in range(10, 90)]
rng = random.Random(0)
pairs = []
for number in range(200):
    claim = " ".join(rng.sample(words, 6))
    label = ("support", "contradict")[number % 2]
    pairs.append(JudgedPair(claim, f"{claim}. {' '.join(rng.sample(words, 5))}.", label, family=str(number), collection="toy"))
made = with_perturbations(pairs, 0.5, random.Random(1))
examples = examples_of(made, 2, 40, random.Random(2))
print(len(made), hashlib.sha256(repr([made, examples]).encode()).hexdigest())
"""


def test_made_up_claims_are_the_same_in_every_process() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert int(printed.pop().split()[0]) > 200


def test_each_collection_keeps_a_share_of_its_families() -> None:
    pairs = [JudgedPair("a", "b", "support", family=f"{name}/{n}", collection=name) for name in "xy" for n in range(50)]
    held = held_out_families(pairs, 0.1, seed=3)
    assert sorted(family[0] for family in held) == ["x"] * 5 + ["y"] * 5
    assert held == held_out_families(pairs[::-1], 0.1, seed=3)
    assert held != held_out_families(pairs, 0.1, seed=4)


def test_windows_are_those_that_share_most_words_with_the_claim() -> None:
    passage = "Nothing here. The tower fell in May. Nobody cares. Rain came. The tower was rebuilt."
    windows = nearest_windows("the tower fell", passage, most=2, size=20)
    assert [passage[begin:end] for begin, end in windows] == ["The tower fell in May.", "The tower was rebuilt."]


@pytest.mark.parametrize("label", ["support", "contradict"])
def test_a_deciding_sentence_is_read_alone_too_and_another_is_neutral(label: str) -> None:
    passage = "Nothing here. The tower fell in May. Nobody cares."
    pair = JudgedPair("It fell.", passage, label, rationale=((14, 36),), collection="toy")  # type: ignore[arg-type]
    whole, alone, other = examples_of([pair], 3, 400, random.Random(0))
    assert (whole.texts, whole.label) == ((passage,), label)
    assert (alone.texts, alone.label) == (("The tower fell in May.",), label)
    assert other.label == "neutral"
    assert other.texts[0] in {"Nothing here.", "Nobody cares."}


def test_nothing_is_made_up_unless_it_is_asked_for() -> None:
    pairs = [JudgedPair("a", "b", "support", family=str(n), collection="toy") for n in range(10)]
    assert [pair for pair in with_perturbations(pairs, 0.0, random.Random(0)) if pair.label == "support"] == pairs
