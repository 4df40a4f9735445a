"""What a model thinks is no part of its judgement."""

from __future__ import annotations

import pytest
from chat_server import fields
from lm.test_thinking import THINKING

from nlp_retrieval.systems.evidence.verifiers.language_model import LanguageModelVerifier


def judgement(verdict):
    return fields(judgement={"quote": "A fox runs.", "verdict": verdict, "confidence": 0.9})


@pytest.mark.parametrize("form", THINKING)
def test_a_judgement_is_what_follows_the_thoughts(server, model, form):
    server.answer = lambda body: THINKING[form].format(judgement("support"), judgement("contradict"))
    (judged,) = LanguageModelVerifier(model()).judge_pairs(["A fox sleeps."], ["A fox runs."])
    assert judged.contradict > 0.8
