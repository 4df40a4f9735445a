"""Every reranker keeps every rule, with each way of blending in with the incoming ranking."""

from __future__ import annotations

import re
import zlib

import pytest
from chat_server import asked, fields, model, server
from hashed_tokens import HashedTokens
from hashed_words import HashedWords
from rerank_server import rerank_server
from rerankers.tiny_models import TinyOnnx, save_bert

from nlp_retrieval import MultiSignalReranker, OverlapReranker
from nlp_retrieval.rerankers.cross_encoder import CrossEncoderReranker
from nlp_retrieval.rerankers.endpoint import HttpReranker
from nlp_retrieval.rerankers.late_interaction import LateInteractionReranker
from nlp_retrieval.rerankers.listwise import ListwiseReranker
from nlp_retrieval.rerankers.mmr import MmrReranker
from nlp_retrieval.testing import ListRerankerRules, RerankerRules

from .as_described import TurnsAround

__all__ = ["model", "server"]


class TestOverlap(RerankerRules):
    component = OverlapReranker


@pytest.mark.soak
class TestOverlapBlendedByRank(RerankerRules):
    component = OverlapReranker

    def make(self):
        return OverlapReranker(blend="rank")


class TestLateInteraction(RerankerRules):
    component = LateInteractionReranker

    def make(self):
        return LateInteractionReranker(HashedTokens(24), blend="score")


class TestCrossEncoderOnnx(RerankerRules):
    component = CrossEncoderReranker

    def prepare(self):
        TinyOnnx().save(self.folder / "model")

    def make(self):
        return CrossEncoderReranker(str(self.folder / "model"), backend="onnx")


@pytest.mark.soak
class TestCrossEncoderTorch(RerankerRules):
    component = CrossEncoderReranker
    tolerance = 1e-5  # a model's arithmetic depends on how far a batch is padded

    def prepare(self):
        save_bert(self.folder / "model")

    def make(self):
        return CrossEncoderReranker(str(self.folder / "model"), device="cpu", batch_size=8)


class TestHttp(RerankerRules):
    component = HttpReranker

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def serving(cls, prepared, request):
        with rerank_server() as running, pytest.MonkeyPatch.context() as patched:
            patched.setenv("RERANK_KEY", "sk-none-0123456789")
            request.cls.url = running.url
            yield

    def make(self):
        return HttpReranker(self.url, "small", documents_per_call=4)


class TestListwise(ListRerankerRules):
    component = ListwiseReranker

    @pytest.fixture(autouse=True)
    def asking(self, server, model):
        """The model orders passages by a checksum of their text; some of its answers have to be repaired."""
        self.model = model
        server.answer = self.answer

    def answer(self, body):
        lines = re.findall(r"^\[\d+\] (.*)$", body["messages"][-1]["content"], re.MULTILINE)
        order = sorted(range(1, len(lines) + 1), key=lambda number: (zlib.crc32(lines[number - 1].encode()), number))
        return fields(ranking=order[: 2 + len(asked(body, "query")) % 5])

    def make(self):
        return ListwiseReranker(self.model(), window=5, step=3)


class TestMmr(ListRerankerRules):
    component = MmrReranker

    def make(self):
        return MmrReranker(HashedWords(24))


@pytest.mark.soak
class TestMmrOverIncomingScores(ListRerankerRules):
    component = MmrReranker

    def make(self):
        return MmrReranker(HashedWords(24), lambda_mult=0.2, relevance="incoming")


class TestMultiSignal(RerankerRules):
    component = MultiSignalReranker

    def make(self):
        return MultiSignalReranker("climate", min_similarity=0.0, encoder=HashedWords(24), word_vectors=HashedWords(16))


@pytest.mark.soak
class TestMultiSignalWithoutProfile(RerankerRules):
    component = MultiSignalReranker

    def make(self):
        return MultiSignalReranker(min_similarity=0.0, blend="rank")


class TestRerankerThatTurnsAround(ListRerankerRules):
    component = TurnsAround
