"""Every encoder keeps every rule."""

from __future__ import annotations

from functools import partial

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

from .checked import configured

soak = pytest.mark.soak
PADDED = 1e-6
"""A model's arithmetic depends on how far a batch is padded."""


def saved(rules, component, save, tolerance=0.0, **settings):
    """Return a conformance class of an encoder whose model is saved first."""

    def prepare(test):
        save(test.folder / "model")

    def make(test):
        return component(str(test.folder / "model"), **settings)

    return configured(rules, component, make, prepare=prepare, tolerance=tolerance)


def save_words(folder):
    save_static(folder, [*EncoderRules().batch, "glacier harpsichord 東京 🦊 Łódź"])


def save_colbert(folder):
    save_stanford(save_bert(folder.parent / "bert"), folder)


CPU = {"precision": "float32", "device": "cpu"}
TestSentenceTransformers = saved(EncoderRules, SentenceTransformerEncoder, save_bert, PADDED, batch_size=4, **CPU)
TestSentenceTransformersByOnnx = soak(saved(EncoderRules, SentenceTransformerEncoder, save_bert, backend="onnx"))
TestStatic = saved(EncoderRules, StaticEncoder, save_words, PADDED)
TestSplade = saved(SparseEncoderRules, SpladeEncoder, save_splade, 1e-5, device="cpu", batch_size=4)
TestSpladeWithQueriesLookedUp = soak(
    saved(SparseEncoderRules, SpladeEncoder, partial(save_splade, lookup=True), 1e-5, device="cpu")
)
TestColbert = saved(TokenEncoderRules, ColbertEncoder, save_colbert, PADDED, batch_size=4, **CPU)
TestColbertTokenByToken = soak(saved(TokenEncoderRules, ColbertEncoder, save_bert, PADDED, projection=8, **CPU))


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


@soak
class TestOpenAI(_Endpoint):
    component = OpenAIEncoder

    def make(self):
        return OpenAIEncoder("small", cache_dir=self.folder / "kept")
