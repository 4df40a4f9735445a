"""Training learns what can be learnt, goes on where it was stopped, and touches nothing that is not its own."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rerankers.tiny_models import save_bert, save_encoder_without_types
from safetensors.torch import load_file

from nlp_retrieval.errors import ConfigurationError, ModelError, RetrievalWarning
from nlp_retrieval.systems.evidence.verifiers.pair_model import PairModelVerifier
from nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair, held_out_families, is_short
from nlp_retrieval.systems.evidence.verifiers.training import FineTuning, TrainingSettings, batches_of, train_verifier

SETTINGS = TrainingSettings(epochs=3, learning_rate=1e-2, batch_tokens=60, max_length=40, perturbations=0.0, held_out=0.2)
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


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_what_can_be_learnt_is_learnt_and_judged_by_the_verifier(base: str, tmp_path: Path) -> None:
    report = train_verifier(judged(), base, tmp_path / "model", SETTINGS)
    assert min(report.losses) < 0.3  # chance is 1.1
    verifier = PairModelVerifier(str(tmp_path / "model"))
    passages = ["the novel that red wrote", "the film that red wrote", "shining that red wrote"]
    support, contradict, neutral = verifier.judge(["red fox"] * 3, passages)
    assert support.support > 0.5
    assert contradict.contradict > 0.5
    assert neutral.neutral > 0.5


@pytest.mark.parametrize(("kind", "dtype"), [("distilbert", "float32"), ("mpnet", "float16"), ("roberta", "bfloat16")])
def test_other_bases_are_trained_in_32_bits_however_they_are_stored(kind: str, dtype: str, tmp_path: Path) -> None:
    base = save_encoder_without_types(tmp_path / "base", kind, dtype)
    report = train_verifier(judged(), str(base), tmp_path / "model", SETTINGS)
    assert min(report.losses) < 0.5  # chance is 1.1
    assert {tensor.dtype for tensor in load_file(tmp_path / "model" / "model.safetensors").values()} == {torch.float32}
    judgements = PairModelVerifier(str(tmp_path / "model")).judge(
        ["red fox"] * 2, ["the novel that red wrote", "the film that red wrote"]
    )
    assert judgements[0].support > 0.5 > judgements[1].support


def test_a_run_that_was_stopped_goes_on_and_ends_with_the_same_model(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_verifier(judged(), base, tmp_path / "whole", SETTINGS)
    monkeypatch.setattr("nlp_retrieval.systems.evidence.verifiers.training._STEPS_BETWEEN_CHECKPOINTS", 8)
    taken, original = 0, FineTuning._loss

    def stopping(tuning: FineTuning, batch: object) -> object:
        nonlocal taken
        taken += 1
        if taken in {20, 60}:
            raise KeyboardInterrupt
        return original(tuning, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(FineTuning, "_loss", stopping)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train_verifier(judged(), base, tmp_path / "stopped", SETTINGS)
    train_verifier(judged(), base, tmp_path / "stopped", SETTINGS)
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")
    assert not list((tmp_path / "stopped").glob("*checkpoint*"))


def test_a_run_inside_a_callers_autocast_is_the_same(base: str, tmp_path: Path) -> None:
    settings = replace(SETTINGS, epochs=1, precision="bfloat16")
    report = train_verifier(judged(), base, tmp_path / "alone", settings)
    assert min(report.losses) < 0.3  # chance is 1.1
    with torch.autocast("cpu", torch.bfloat16):
        assert train_verifier(judged(), base, tmp_path / "inside", settings) == report
    assert weights(tmp_path / "inside") == weights(tmp_path / "alone")


def test_a_model_that_gives_every_pair_the_same_answer_is_told(base: str, tmp_path: Path) -> None:
    with pytest.warns(RetrievalWarning, match="all held-out pairs the same answer; pass a lower learning_rate"):
        train_verifier(judged(), base, tmp_path / "model", replace(SETTINGS, learning_rate=1.0, epochs=1, short_epochs=0))


def test_a_finished_run_is_not_done_again(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train_verifier(judged(), base, tmp_path / "model", SETTINGS)
    monkeypatch.setattr(FineTuning, "train", lambda *_: pytest.fail("it is trained again"))
    assert train_verifier(judged(), base, tmp_path / "model", SETTINGS) == first


def test_a_folder_of_another_run_or_of_something_else_is_left_alone(base: str, tmp_path: Path) -> None:
    train_verifier(judged(), base, tmp_path / "model", SETTINGS)
    kept = weights(tmp_path / "model")
    with pytest.raises(ConfigurationError, match="a model of other pairs, settings or another base model"):
        train_verifier(judged(90), base, tmp_path / "model", SETTINGS)
    assert weights(tmp_path / "model") == kept
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="is not empty and holds no training run"):
        train_verifier(judged(), base, tmp_path / "mine", SETTINGS)


def test_a_damaged_checkpoint_is_named(base: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "training_checkpoint.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(ConfigurationError, match="is not a checkpoint of a training run"):
        train_verifier(judged(), base, tmp_path / "model", SETTINGS)


def test_held_out_families_are_never_trained_on(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    module = "nlp_retrieval.systems.evidence.verifiers.training"
    from nlp_retrieval.systems.evidence.verifiers.pairs import held_out_families
    from nlp_retrieval.systems.evidence.verifiers.perturbations import with_perturbations

    def watched(pairs: list[JudgedPair], *others: object) -> list[JudgedPair]:
        seen.update(pair.family for pair in pairs)
        return with_perturbations(pairs, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(f"{module}.with_perturbations", watched)
    report = train_verifier(judged(), base, tmp_path / "model", SETTINGS)
    held = held_out_families(judged(), SETTINGS.held_out, SETTINGS.seed)
    assert not seen & held
    assert (report.pairs, report.held_out) == (240, 60)


def test_short_pairs_are_read_by_themselves_first(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[bool]] = []

    def recorded(examples, *rest):  # type: ignore[no-untyped-def]
        read.append([is_short(one) for one in examples])
        return batches_of(examples, *rest)

    monkeypatch.setattr("nlp_retrieval.systems.evidence.verifiers.training.batches_of", recorded)
    long = [replace(pair, passage=f"{pair.passage}. " * 30, family=f"{pair.family} long") for pair in judged(30)]
    settings = replace(SETTINGS, epochs=1, short_epochs=2)
    report = train_verifier([*judged(30), *long], base, tmp_path / "model", settings)
    assert len(report.losses) == 3
    first, last, _, second = read  # two epochs tell how many steps there are; then the held-out pairs, and the epoch between
    assert [all(one) for one in (first, second, last)] == [True, True, False]
    n_long = sum(not one for one in last)
    assert n_long > 0
    assert sum(last) == len(first) - len(first) // 2


def test_nothing_to_train_on_is_an_error(base: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no pairs"):
        train_verifier([], base, tmp_path / "model")
    with pytest.raises(ConfigurationError, match="every pair is of one family"):
        train_verifier([JudgedPair("a", "b", "support", family="f")], base, tmp_path / "model")


def test_a_base_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="does not load as a model to fine-tune"):
        train_verifier(judged(), str(tmp_path / "base"), tmp_path / "model", SETTINGS)


def test_another_precision_or_device_is_named_before_anything_is_trained(base: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="precision='bf16'"):
        TrainingSettings(precision="bf16")
    with pytest.raises(ConfigurationError, match="there is no device 'cuda:7' here"):
        train_verifier(judged(), base, tmp_path / "model", SETTINGS, device="cuda:7")
    assert not (tmp_path / "model").exists()


@pytest.mark.soak
def test_what_is_kept_is_as_sure_as_it_is_right_on_held_out_pairs(base: str, tmp_path: Path) -> None:
    """The temperature is in the weights: of what the saved model says no other one would be better."""
    sure = replace(SETTINGS, epochs=6, learning_rate=3e-2)
    pairs = [replace(pair, label="support") if number % 5 == 0 else pair for number, pair in enumerate(judged())]
    told: list[str] = []
    report = train_verifier(pairs, base, tmp_path / "model", sure, told.append)
    divided = [float(line.rpartition(" ")[2]) for line in told]
    assert abs(divided[report.best_epoch - 1] - 1) > 0.1
    held = held_out_families(pairs, sure.held_out, sure.seed)
    some = [pair for pair in pairs if pair.family in held]
    found = PairModelVerifier(str(tmp_path / "model")).judge([pair.claim for pair in some], [pair.passage for pair in some])
    labels = np.array([("support", "contradict", "neutral").index(pair.label) for pair in some])
    logits = np.log([[one.support, one.contradict, one.neutral] for one in found])

    def loss(temperature: float) -> float:
        scaled = logits / temperature
        return float((np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(len(labels)), labels]).mean())

    assert loss(1) <= min(loss(0.9), loss(1.1))
    assert loss(1) == pytest.approx(report.losses[report.best_epoch - 1], abs=1e-3)


def test_the_running_mean_of_the_weights_is_kept(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "bert.encoder.layer.0.output.dense.weight"
    weights: list[torch.Tensor] = []
    take = FineTuning._update_mean

    def watched(tuning: FineTuning) -> None:
        if not weights:
            weights.append(tuning.mean.get_parameter(name).detach().clone())
        take(tuning)
        weights.append(tuning.model.get_parameter(name).detach().clone())

    monkeypatch.setattr(FineTuning, "_update_mean", watched)
    train_verifier(judged(), base, tmp_path / "model", replace(SETTINGS, epochs=1, short_epochs=0))
    mean, *steps = weights
    for number, one in enumerate(steps, start=1):
        mean = torch.lerp(mean, one, max(0.005, 10 / (10 + number)))
    kept = load_file(tmp_path / "model" / "model.safetensors")[name]
    torch.testing.assert_close(kept, mean)
    assert len(steps) > 10
    assert (kept - steps[-1]).abs().max() > 1e-4
