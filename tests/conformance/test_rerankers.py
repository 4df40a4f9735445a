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
from nlp_retrieval.testing import ListRerankerRules, RerankerRules

from .as_described import TurnsAround
from .checked import configured

soak = pytest.mark.soak

__all__ = ["model", "server"]


TestOverlap = configured(RerankerRules, OverlapReranker)
TestOverlapBlendedByRank = soak(configured(RerankerRules, OverlapReranker, lambda _: OverlapReranker(blend="rank")))
TestLateInteraction = configured(
    RerankerRules, LateInteractionReranker, lambda _: LateInteractionReranker(HashedTokens(24), blend="score")
)
TestMultiSignal = configured(
    RerankerRules,
    MultiSignalReranker,
    lambda _: MultiSignalReranker("climate", min_similarity=0.0, encoder=HashedWords(24), word_vectors=HashedWords(16)),
)
TestMultiSignalWithoutProfile = soak(
    configured(RerankerRules, MultiSignalReranker, lambda _: MultiSignalReranker(min_similarity=0.0, blend="rank"))
)
TestRerankerThatTurnsAround = configured(ListRerankerRules, TurnsAround)


class TestCrossEncoderOnnx(RerankerRules):
    component = CrossEncoderReranker

    def prepare(self):
        TinyOnnx().save(self.folder / "model")

    def make(self):
        return CrossEncoderReranker(str(self.folder / "model"), backend="onnx")


@soak
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
        return ListwiseReranker(self.model(), window=5)
