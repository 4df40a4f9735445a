"""Every reranker keeps every rule, with each way of blending in with the incoming ranking."""

from __future__ import annotations

from hashed_tokens import HashedTokens
from hashed_words import HashedWords
from rerankers.tiny_models import TinyOnnx, save_bert

from nlp_retrieval import MultiSignalReranker, OverlapReranker
from nlp_retrieval.rerankers.cross_encoder import CrossEncoderReranker
from nlp_retrieval.rerankers.late_interaction import LateInteractionReranker
from nlp_retrieval.rerankers.mmr import MmrReranker
from nlp_retrieval.testing import ListRerankerRules, RerankerRules


class TestOverlap(RerankerRules):
    component = OverlapReranker


class TestOverlapBlendedByRank(RerankerRules):
    component = OverlapReranker

    def make(self):
        return OverlapReranker(blend="rank")


class TestLateInteraction(RerankerRules):
    component = LateInteractionReranker

    def other_values(self):
        return {"encoder": HashedTokens(24, seed=1)}

    def make(self):
        return LateInteractionReranker(HashedTokens(24), blend="score")


class TestCrossEncoderOnnx(RerankerRules):
    component = CrossEncoderReranker

    def prepare(self):
        TinyOnnx().save(self.folder / "model")

    def make(self):
        return CrossEncoderReranker(str(self.folder / "model"), backend="onnx")


class TestCrossEncoderTorch(RerankerRules):
    component = CrossEncoderReranker
    tolerance = 1e-5  # a model's arithmetic depends on how far a batch is padded

    def prepare(self):
        save_bert(self.folder / "model")

    def make(self):
        return CrossEncoderReranker(str(self.folder / "model"), device="cpu", batch_size=8)


class TestMmr(ListRerankerRules):
    component = MmrReranker

    def other_values(self):
        return {"encoder": HashedWords(24, seed=1)}

    def make(self):
        return MmrReranker(HashedWords(24))


class TestMmrOverIncomingScores(ListRerankerRules):
    component = MmrReranker

    def other_values(self):
        return {"encoder": HashedWords(24, seed=1)}

    def make(self):
        return MmrReranker(HashedWords(24), lambda_mult=0.2, relevance="incoming")


class TestMultiSignal(RerankerRules):
    component = MultiSignalReranker

    def other_values(self):
        return {
            "profile": "guidelines",
            "encoder": HashedWords(24, seed=1),
            "word_vectors": HashedWords(16, seed=2),
            "transformer_signal": "other.score",
            "document_field": "other",
        }

    def make(self):
        return MultiSignalReranker("climate", min_similarity=0.0, encoder=HashedWords(24), word_vectors=HashedWords(16))


class TestMultiSignalWithoutProfile(RerankerRules):
    component = MultiSignalReranker

    def other_values(self):
        return TestMultiSignal.other_values(self)

    def make(self):
        return MultiSignalReranker(min_similarity=0.0, blend="rank")
