"""Every answerer keeps every rule; one that asks a language model asks a server of the tests."""

from __future__ import annotations

import pytest
from chat_server import asked, fields, model, server

from nlp_retrieval.lm.answering import LanguageModelAnswerer
from nlp_retrieval.testing import AnswererRules

__all__ = ["model", "server"]


class AsksAModel(AnswererRules):
    """Of answerers that ask: every test has a server and an empty folder of answers."""

    component = LanguageModelAnswerer

    @pytest.fixture(autouse=True)
    def asking(self, server, model):
        self.model = model
        server.answer = lambda body: fields(
            reasoning="So it is.", citations="1.1, 9.9, 2", answer=asked(body, "question").split()[-1]
        )


class TestLanguageModelAnswerer(AsksAModel):
    def make(self):
        return LanguageModelAnswerer(self.model(), passages=2)
