"""Every encoder keeps every rule."""

from __future__ import annotations

from colbert_checkpoints import save_bert, save_stanford
from hashed_tokens import HashedTokens
from hashed_words import HashedWords

from nlp_retrieval import SentenceTransformerEncoder
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.testing import EncoderRules, TokenEncoderRules


class TestHashedWords(EncoderRules):
    component = HashedWords


class TestHashedTokens(TokenEncoderRules):
    component = HashedTokens


class TestSentenceTransformers(EncoderRules):
    component = SentenceTransformerEncoder
    tolerance = 1e-6  # a model's arithmetic depends on how far a batch is padded

    def prepare(self):
        save_bert(self.folder / "model")

    def make(self):
        return SentenceTransformerEncoder(str(self.folder / "model"), precision="float32", device="cpu", batch_size=4)


class TestColbert(TokenEncoderRules):
    component = ColbertEncoder
    tolerance = 1e-6

    def prepare(self):
        save_stanford(save_bert(self.folder / "bert"), self.folder / "model")

    def make(self):
        return ColbertEncoder(str(self.folder / "model"), precision="float32", device="cpu", batch_size=4)


class TestColbertTokenByToken(TokenEncoderRules):
    component = ColbertEncoder
    tolerance = 1e-6

    def prepare(self):
        save_bert(self.folder / "bert")

    def make(self):
        return ColbertEncoder(str(self.folder / "bert"), projection=8, precision="float32", device="cpu")
