"""Every encoder keeps every rule."""

from __future__ import annotations

import numpy as np
import pytest
from colbert_checkpoints import save_bert, save_stanford
from embedding_server import embedding_server
from sparse_models import save_splade
from static_models import save_static

from nlp_retrieval import HttpEncoder, OpenAIEncoder, SentenceTransformerEncoder, StaticEncoder, WordVectorEncoder
from nlp_retrieval.encoders import endpoint as servers
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.encoders.splade import SpladeEncoder
from nlp_retrieval.encoders.word_vectors import write_word_vectors
from nlp_retrieval.testing import EncoderRules, SparseEncoderRules, TokenEncoderRules
from nlp_retrieval.text.words import stems_of_language


class TestSentenceTransformers(EncoderRules):
    component = SentenceTransformerEncoder
    tolerance = 1e-6  # a model's arithmetic depends on how far a batch is padded

    def prepare(self):
        save_bert(self.folder / "model")

    def make(self):
        return SentenceTransformerEncoder(str(self.folder / "model"), precision="float32", device="cpu", batch_size=4)


@pytest.mark.soak
class TestSentenceTransformersByOnnx(EncoderRules):
    component = SentenceTransformerEncoder

    def prepare(self):
        save_bert(self.folder / "model")

    def make(self):
        return SentenceTransformerEncoder(str(self.folder / "model"), backend="onnx")


class TestStatic(EncoderRules):
    component = StaticEncoder
    tolerance = 1e-6

    def prepare(self):
        save_static(self.folder / "model", [*self.batch, "glacier harpsichord 東京 🦊 Łódź"])

    def make(self):
        return StaticEncoder(self.folder / "model")


class TestSplade(SparseEncoderRules):
    component = SpladeEncoder
    tolerance = 1e-5  # a model's arithmetic depends on how far a batch is padded

    def prepare(self):
        save_splade(self.folder / "model")

    def make(self):
        return SpladeEncoder(str(self.folder / "model"), device="cpu", batch_size=4)


@pytest.mark.soak
class TestSpladeWithQueriesLookedUp(SparseEncoderRules):
    component = SpladeEncoder
    tolerance = 1e-5

    def prepare(self):
        save_splade(self.folder / "model", lookup=True)

    def make(self):
        return SpladeEncoder(str(self.folder / "model"), device="cpu")


class TestWordVectors(EncoderRules):
    component = WordVectorEncoder

    def prepare(self):
        words = sorted(
            {word for text in [*self.batch, "glacier harpsichord 東京 🦊 Łódź"] for word in stems_of_language(None).words(text)}
        )
        vectors = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
        write_word_vectors(self.folder / "vectors", words, vectors, [1.0 + number % 5 for number in range(len(words))])

    def make(self):
        return WordVectorEncoder(str(self.folder / "vectors"))


class TestColbert(TokenEncoderRules):
    component = ColbertEncoder
    tolerance = 1e-6

    def prepare(self):
        save_stanford(save_bert(self.folder / "bert"), self.folder / "model")

    def make(self):
        return ColbertEncoder(str(self.folder / "model"), precision="float32", device="cpu", batch_size=4)


@pytest.mark.soak
class TestColbertTokenByToken(TokenEncoderRules):
    component = ColbertEncoder
    tolerance = 1e-6

    def prepare(self):
        save_bert(self.folder / "bert")

    def make(self):
        return ColbertEncoder(str(self.folder / "bert"), projection=8, precision="float32", device="cpu")


class _Endpoint(EncoderRules):
    """A server of hashed words, which gives the vector of a text whatever else is in the request."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def serving(cls, prepared, request):
        with embedding_server() as running, pytest.MonkeyPatch.context() as patched:
            patched.setattr(servers, "OPENAI", running.url)
            patched.setenv("OPENAI_API_KEY", "sk-none-0123456789")
            request.cls.url = running.url
            yield


class TestHttp(_Endpoint):
    component = HttpEncoder

    def make(self):
        return HttpEncoder(self.url, "small", batch_size=4, cache_dir=self.folder / "kept")


@pytest.mark.soak
class TestOpenAI(_Endpoint):
    component = OpenAIEncoder

    def make(self):
        return OpenAIEncoder("small", cache_dir=self.folder / "kept")
