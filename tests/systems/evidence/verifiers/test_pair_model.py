"""Any pair model of declared labels judges; what it says is what its logits say, window by window."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from rerankers.tiny_models import WORDS, save_bert
from soaking import mostly_soaked

from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.rerankers.pair_models import TorchPairs
from nlp_retrieval.systems.evidence.verifiers.base import window_spans
from nlp_retrieval.systems.evidence.verifiers.pair_model import Meaning, PairModelVerifier

THREE: list[Meaning] = ["support", "contradict", "neutral"]
CLAIM = " ".join(WORDS[:5])
PASSAGE = ". ".join(" ".join(WORDS[first : first + 4]).capitalize() for first in (0, 4, 8, 2, 6, 1, 5)) + "."


def named(folder: Path, names: list[str]) -> Path:
    settings = json.loads((folder / "config.json").read_text())
    settings["id2label"] = {str(number): name for number, name in enumerate(names)}
    settings["label2id"] = {name: number for number, name in enumerate(names)}
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return named(save_bert(tmp_path_factory.mktemp("nli"), labels=3), ["entailment", "contradiction", "neutral"])


def test_a_short_passage_is_judged_by_the_softmax_of_the_model(folder: Path) -> None:
    (judgement,) = PairModelVerifier(str(folder)).judge([CLAIM], [" ".join(WORDS[3:9])])
    (logits,) = TorchPairs(folder, None, "cpu").logits([(CLAIM, " ".join(WORDS[3:9]))]).astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum()
    assert (judgement.support, judgement.contradict, judgement.neutral) == pytest.approx(tuple(expected), abs=1e-5)


def test_a_long_passage_is_judged_by_the_window_that_speaks_most_for_each_label(folder: Path) -> None:
    (judgement,) = PairModelVerifier(str(folder), window=60).judge([CLAIM], [PASSAGE])
    windows = window_spans(PASSAGE, 60)
    assert len(windows) > 2
    logits = TorchPairs(folder, None, "cpu").logits([(CLAIM, PASSAGE[begin:end]) for begin, end in windows])
    best = (logits[:, :2] - logits[:, 2:]).max(axis=0).astype(np.float64)
    raised = np.exp(np.append(best, 0.0))
    assert (judgement.support, judgement.contradict, judgement.neutral) == pytest.approx(tuple(raised / raised.sum()), abs=1e-5)


def test_the_deciding_sentence_is_the_one_of_the_window_with_most_words_of_the_claim(folder: Path) -> None:
    (judgement,) = PairModelVerifier(str(folder), window=2_000).judge([CLAIM], [PASSAGE])
    assert PASSAGE[slice(*judgement.sentence)] == PASSAGE.partition(" ".join(WORDS[4:6]).capitalize())[0].strip()


@pytest.mark.parametrize("order", mostly_soaked(list(permutations(range(3))), 2))
def test_the_order_of_labels_is_the_declared_one(order: tuple[int, int, int], tmp_path: Path) -> None:
    names = ["entailment", "contradiction", "neutral"]
    plain = save_bert(tmp_path / "model", labels=3)
    declared = PairModelVerifier(str(plain), labels=[THREE[number] for number in order]).judge([CLAIM], [PASSAGE])
    said = PairModelVerifier(str(named(plain, [names[number] for number in order]))).judge([CLAIM], [PASSAGE])
    assert [(one.support, one.contradict) for one in declared] == [(one.support, one.contradict) for one in said]


def test_labels_that_are_not_what_the_model_says_are_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json says \['support', 'contradict', 'neutral'\]"):
        PairModelVerifier(str(folder), labels=["contradict", "support", "neutral"]).judge([CLAIM], [PASSAGE])


def test_a_model_that_does_not_say_what_its_outputs_mean_needs_labels(tmp_path: Path) -> None:
    plain = save_bert(tmp_path / "model", labels=3)
    with pytest.raises(ModelError, match="does not say what its outputs mean; pass labels"):
        PairModelVerifier(str(plain)).judge([CLAIM], [PASSAGE])


def test_a_model_of_two_labels_never_says_contradict(tmp_path: Path) -> None:
    plain = named(save_bert(tmp_path / "model", labels=2), ["not_supported", "supported"])
    (judgement,) = PairModelVerifier(str(plain)).judge([CLAIM], [PASSAGE])
    assert judgement.contradict == 0.0
    assert judgement.support + judgement.neutral == pytest.approx(1.0)


def test_a_claim_that_is_too_long_to_be_read_whole_is_never_supported(folder: Path) -> None:
    long, verifier = f"{CLAIM} " * 200, PairModelVerifier(str(folder))
    first, second = verifier.judge([long, CLAIM], [PASSAGE, PASSAGE])
    assert (first.support, first.contradict, first.neutral) == (0.0, 0.0, 1.0)
    assert (first.was_judged, second.was_judged) == (False, True)
    assert first.signals.keys() == second.signals.keys()
    assert second == verifier.judge([CLAIM], [PASSAGE])[0]
    assert verifier.judge([long], [PASSAGE]) == [first]


def test_labels_that_are_no_verdict_are_refused(tmp_path: Path) -> None:
    for labels in [["support"], ["support", "support"], ["contradict", "neutral"]]:
        plain = save_bert(tmp_path / "model", labels=3)
        with pytest.raises(ConfigurationError, match="each once"):
            PairModelVerifier(str(plain), labels=labels).judge([CLAIM], [PASSAGE])
