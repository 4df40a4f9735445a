"""Training learns what can be learnt, and touches nothing that is not its own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from rerankers.tiny_models import save_bert, save_encoder_without_types
from soaking import mostly_soaked

from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.systems.evidence.verifiers.fitting import JudgedPair
from nlp_retrieval.systems.evidence.verifiers.pair_model import PairModelVerifier
from nlp_retrieval.systems.evidence.verifiers.training import train_verifier

pytest.importorskip("accelerate")
ANIMALS, COLOURS = ["fox", "whale", "tree"], ["red", "blue", "green"]


def judged(n: int = 300) -> list[JudgedPair]:
    """Claims of a colour, beside a text that has it, has none, or is of something else."""
    rng = random.Random(0)
    pairs = []
    for number in range(n):
        colour = rng.choice(COLOURS)
        label = ("support", "contradict", "neutral")[number % 3]
        text = {"support": "the novel", "contradict": "the film", "neutral": "shining"}[label]
        claim = f"{colour} {rng.choice(ANIMALS)}"
        pairs.append(JudgedPair(claim, f"{text} that {colour} wrote", label, family=str(number), collection="toy"))  # type: ignore[arg-type]
    return pairs


@pytest.fixture
def base(tmp_path: Path) -> str:
    return str(save_bert(tmp_path / "base", head=False))


@pytest.mark.parametrize("kind", mostly_soaked(["bert", "mpnet"], 1))
def test_what_can_be_learnt_is_learnt_and_judged_by_the_verifier(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "base"  # stored in 16 bits; a reranker with its head of one score, or a plain encoder
    base = save_bert(folder, dtype="float16") if kind == "bert" else save_encoder_without_types(folder, kind, "float16")
    *counts, loss = train_verifier(judged(), str(base), tmp_path / "model", epochs=6, learning_rate=1e-2)
    assert loss < 0.4  # chance is 1.1
    assert counts == [273, 27]
    verifier = PairModelVerifier(str(tmp_path / "model"))
    passages = ["the novel that red wrote", "the film that red wrote", "shining that red wrote"]
    support, contradict, neutral = verifier.judge(["red fox"] * 3, passages)
    assert support.support > 0.5
    assert contradict.contradict > 0.5
    assert neutral.neutral > 0.5


def test_a_folder_with_something_in_it_is_left_alone(base: str, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="is not empty"):
        train_verifier(judged(), base, tmp_path / "mine")


def test_what_cannot_be_trained_is_an_error_before_anything_is(base: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="one family at most"):
        train_verifier([JudgedPair("a", "b", "support", family="f")], base, tmp_path / "model")
    with pytest.raises(ConfigurationError, match="there is no device 'cuda:7' here"):
        train_verifier(judged(), base, tmp_path / "model", device="cuda:7")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="does not load as a model to fine-tune"):
        train_verifier(judged(), str(tmp_path / "none"), tmp_path / "model")
    assert not (tmp_path / "model").exists()
