"""Every verifier keeps every rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from rerankers.tiny_models import save_bert

from nlp_retrieval.evidence.verifiers.lexical import LexicalVerifier
from nlp_retrieval.evidence.verifiers.pair_model import PairModelVerifier
from nlp_retrieval.testing import VerifierRules

_FOLDERS: dict[str, Path] = {}


@pytest.fixture(scope="module", autouse=True)
def _model(tmp_path_factory: pytest.TempPathFactory) -> None:
    _FOLDERS["nli"] = save_bert(tmp_path_factory.mktemp("nli"), labels=3)


class TestLexicalVerifier(VerifierRules):
    component = LexicalVerifier


class TestPairModelVerifier(VerifierRules):
    component = PairModelVerifier

    def make(self):
        return PairModelVerifier(str(_FOLDERS["nli"]), labels=["support", "contradict", "neutral"], window=60, most_windows=3)
