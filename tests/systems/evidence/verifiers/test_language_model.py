"""A language model is believed where its quote is in the passage; nothing follows from any other answer."""

from __future__ import annotations

from typing import Any

import pytest
from chat_server import asked, fields
from soaking import mostly_soaked

from nlp_retrieval.core.context import collected_notes
from nlp_retrieval.errors import ModelError, RetrievalWarning
from nlp_retrieval.systems.evidence.verifiers.fitting import JudgedPair, fit_verifier
from nlp_retrieval.systems.evidence.verifiers.language_model import LanguageModelVerifier

CLAIM = "The tram has 22 stops."
PASSAGE = "The tram opened in 1932. It has 22 stops and 9 lines. It was painted green."
QUOTE = "It has 22 stops and 9 lines."


def says(verdict: object = "support", quote: object = QUOTE, confidence: object = 0.9) -> str:
    return fields(judgement={"quote": quote, "verdict": verdict, "confidence": confidence})


@pytest.mark.parametrize("verdict", ["support", "contradict", "neutral"])
def test_the_verdict_decides_and_the_sentence_is_that_of_the_quote(server, model, verdict):
    server.answer = lambda body: says(verdict.title(), "22 stops and 9")
    verifier = LanguageModelVerifier(model())
    (judged,) = verifier.judge([CLAIM], [PASSAGE])
    assert {"support": judged.support, "contradict": judged.contradict, "neutral": judged.neutral} == pytest.approx(
        {"support": 0.05, "contradict": 0.05, "neutral": 0.05} | {verdict: 0.9}
    )
    assert PASSAGE[slice(*judged.sentence)] == QUOTE
    assert (judged.signals["quote_missing"], judged.was_judged) == (0, True)
    assert verifier.threshold == 0.5


@pytest.mark.parametrize("verdict", ["support", "contradict"])
@pytest.mark.parametrize("quote", mostly_soaked(["", "It has 27 stops.", "stops", CLAIM, "It has 22 stops ... green."], 2))
def test_a_quote_that_does_not_stand_in_the_passage_makes_the_judgement_neutral(server, model, verdict, quote):
    server.answer = lambda body: says(verdict, quote, 1.0)
    with collected_notes():
        (judged,) = LanguageModelVerifier(model()).judge([CLAIM], [PASSAGE])
    assert judged.neutral == pytest.approx(0.8)
    assert (judged.signals["quote_missing"], judged.was_judged) == (1, True)
    assert PASSAGE[slice(*judged.sentence)] == QUOTE, "the nearest sentence, as without a model"


def test_invented_quotes_are_counted_in_one_warning(server, model):
    server.answer = lambda body: says("neutral", QUOTE if "true" in asked(body, "claim") else "It has 27 stops.")
    with pytest.warns(RetrievalWarning, match="a quote that is not in the passage for 2 of 3 claims") as caught:
        judged = LanguageModelVerifier(model()).judge([CLAIM, f"{CLAIM} (true)", f"{CLAIM} So it is."], [PASSAGE] * 3)
    assert len(caught) == 1
    assert judged[0].neutral > max(judged[0].support, judged[0].contradict)


UNUSABLE = [
    "", "I cannot help with that.", "{" * 5000, says("maybe"), says(confidence=2), says(quote=[QUOTE]), fields(judgement=[1]),
    says()[:60],
]  # fmt: skip


@pytest.mark.parametrize("answer", UNUSABLE, ids=range(len(UNUSABLE)))
def test_an_answer_that_cannot_be_used_is_an_abstention_with_one_warning(server, model, answer):
    server.answer = lambda body: says() if asked(body, "claim").startswith("Good") else answer
    lm = model()
    with pytest.warns(RetrievalWarning, match=r"language_model: no usable answer.*2 of 3 .*count as neutral") as caught:
        judged = LanguageModelVerifier(lm).judge([CLAIM, f"Good: {CLAIM}", "A dog barks."], [PASSAGE] * 3)
    assert [one.was_judged for one in judged] == [False, True, False]
    assert judged[0].neutral == judged[2].neutral == pytest.approx(0.8)
    assert judged[1].support == pytest.approx(0.9)
    assert len(caught) == 1
    assert lm.counts.degraded == 2


def test_of_a_long_passage_the_windows_nearest_to_the_claim_are_shown_in_order(server, model):
    server.answer = lambda body: says()
    fill = [f"Filler sentence number {n} speaks of rain and of clouds." for n in range(400)]
    text = " ".join([*fill[:100], "The tram was planned early.", *fill[100:300], QUOTE, *fill[300:]])
    (judged,) = LanguageModelVerifier(model(), most_characters=1600).judge(["The tram has 22 stops and lines."], [text])
    assert text[slice(*judged.sentence)] == QUOTE
    shown = asked(server.bodies[0], "passage")
    assert len(shown) < 1_800
    LanguageModelVerifier(model(), most_characters=1600).judge([CLAIM], [". ".join([QUOTE.replace(".", ";") * 20] * 3)])
    assert len(asked(server.bodies[1], "passage")) < 1_800
    assert shown.index("The tram was planned early.") < shown.index("left out here", 40) < shown.index(QUOTE)


# calibration


def test_its_signals_are_those_of_a_pair_model_and_fit_the_same_calibration(server, model, tmp_path):
    verdicts = {"Yes": "support", "No": "contradict", "Perhaps": "neutral"}

    def answer(body: dict[str, Any]) -> str:
        return says(verdicts[asked(body, "claim").split()[0]], QUOTE, 0.7)

    server.answer = answer
    pairs = [
        JudgedPair(f"{word} it has stops, says number {n}", PASSAGE, label, family=f"f{n}")
        for n in range(12)
        for word, label in verdicts.items()
    ]
    calibration, figures = fit_verifier(LanguageModelVerifier(model()), pairs)
    wanted = """model_support model_contradict quote_missing overlap sentence_overlap bigrams longest_run verbatim
        numbers_missing dates_missing names_missing negation opposite claim_negated"""
    assert calibration.signals == wanted.split()
    assert min(figures.values()) > 0.9
    file = tmp_path / "calibration.json"
    calibration.save(file)
    calibrated = LanguageModelVerifier(model(), calibration=str(file))
    assert calibrated.judge(["Yes it has stops"], [PASSAGE])[0].support > 0.7
    assert calibrated.threshold == calibration.threshold
    n_asked = len(server.bodies)
    with pytest.raises(ModelError, match="is not a calibration"):
        LanguageModelVerifier(model(), calibration=str(tmp_path / "missing.json")).judge(["No it has none"], [PASSAGE])
    assert len(server.bodies) == n_asked


def test_a_claim_that_would_be_cut_is_not_asked_about(server, model):
    server.answer = lambda body: says()
    long, short = LanguageModelVerifier(model()).judge(["The tram has 22 stops. " * 100, CLAIM], [PASSAGE, PASSAGE])
    assert (long.was_judged, short.was_judged) == (False, True)
    assert long.support < 0.34
    assert len(server.bodies) == 1
