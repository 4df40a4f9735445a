"""Encoding by models of sentence-transformers: any bi-encoder of the hub, or a local folder, run by torch or onnxruntime."""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Literal, cast

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.components.trust_rules import ENCODER_RULES, may_set
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.backends import (
    Backend,
    ExportPrecision,
    OnnxModel,
    Precision,
    check_choice,
    exported_encoder,
    on_cpu,
    queries_at_once,
    require_device,
    resolved_precision,
)
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, scale_to_length_one
from nlp_retrieval.encoders.bert import NumpyBert, may_have_gpu, open_bert
from nlp_retrieval.encoders.models import (
    ModelHolder,
    alone_for,
    as_model_error,
    loading,
    longer_than_read,
    open_once,
    require_words,
    setting_of,
    turn_of,
)
from nlp_retrieval.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

Task = Literal["encode_query", "encode_document"]

_FEW, _SHORT = 32, 1000  # queries, and characters of each, that are encoded sooner without torch than torch is imported


class SentenceTransformerEncoder(ModelHolder["SentenceTransformer | OnnxModel"], BaseEncoder):
    """A bi-encoder of the sentence-transformers library (Reimers and Gurevych, EMNLP 2019).

    Encoders with equal settings share the open model. docs/ENCODERS.md compares backends and precisions.

    Args:
        model: a hub name, or a local folder saved by sentence-transformers.
        query_prompt: put before every query; by default the model's own.
        passage_prompt: put before every passage; by default the model's own.
        normalize: whether vectors are scaled to length 1, so that the inner product is the cosine. By default they are unless
            the model's own settings name another similarity: with ``dot`` they keep their lengths; with ``euclidean`` two
            numbers are added to each, so that the inner product is minus half the squared distance.
        precision: of the arithmetic. ``auto`` is, by torch, bfloat16 on GPUs that have it and, for passages, on CPUs with AMX,
            else float32; by ONNX it is ``int8``, 8-bit weights. Vectors are float32 in any case.
        backend: ``torch``; ``onnx``, on the CPU, for ``int8`` or ``float32``; or ``auto``: ONNX on a CPU where it is installed
            and ``precision`` is ``auto`` or ``int8``, else torch.
        max_length: tokens that are read of a text; by default the model's own limit.
        batch_size: texts encoded at once; batches hold texts of similar length.
        device: ``cpu``, ``cuda``, ...; by default the best there is.
        revision: commit, tag or branch on the hub.
        trust_remote_code: run Python code that comes with the model. Off: a model that needs it does not load.

    Examples:
        >>> encoder = SentenceTransformerEncoder("intfloat/e5-small-v2", query_prompt="query: ", passage_prompt="passage: ")
        >>> FaissRetriever(encoder)
        FaissRetriever(encoder=SentenceTransformerEncoder(model='intfloat/e5-small-v2', query_prompt='query: ',
        passage_prompt='passage: '))
    """

    name = "sentence-transformers"
    manifest_may_set = ENCODER_RULES | may_set("normalize", "backend")
    search_only = frozenset({"query_prompt", "batch_size", "device"})

    def __init__(
        self,
        model: str = "sentence-transformers/all-MiniLM-L6-v2",
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        normalize: bool | None = None,
        precision: Precision = "auto",
        backend: Backend = "torch",
        max_length: Annotated[int, Field(ge=1)] | None = None,
        batch_size: Annotated[int, Field(ge=1)] = 64,
        device: str | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        check_choice(backend, precision, device)
        self.model = model
        self.query_prompt = query_prompt
        self.passage_prompt = passage_prompt
        self.normalize = normalize
        self.precision: Precision = precision
        self.backend: Backend = backend
        self.max_length = max_length
        self.batch_size = batch_size
        self.device = device
        self.revision = revision
        self.trust_remote_code = trust_remote_code

    @cached_property
    def used_backend(self) -> Literal["torch", "onnx"]:
        """The backend in use; ``auto`` is ONNX on a CPU where it is installed and 8-bit weights are allowed."""
        if self.backend != "auto" or self.precision == "int8":
            return "torch" if self.backend == "torch" else "onnx"
        installed = all(importlib.util.find_spec(package) for package in ("onnxruntime", "tokenizers", "onnx"))
        return "onnx" if self.precision == "auto" and installed and on_cpu(self.device) else "torch"

    @property
    def used_precision(self) -> Precision:
        """The precision in use, of passages."""
        if self.used_backend == "onnx":
            return "int8" if self.precision == "auto" else self.precision
        return cast(Precision, resolved_precision(self.precision, self.device))

    def resolved_settings(self) -> Config:
        return {} if self.backend == "torch" else {"backend": self.used_backend, "precision": self.used_precision}

    @cached_property
    def similarity(self) -> str:
        """How vectors are compared: ``cosine``, ``dot`` or ``euclidean``."""
        if self.normalize is not None:
            return "cosine" if self.normalize else "dot"
        said = setting_of(self.files.folder / "config_sentence_transformers.json", "similarity_fn_name") or "cosine"
        if said not in ("cosine", "dot", "euclidean"):
            raise ModelError(
                f"{self.model} compares vectors by {json.dumps(said)[:80]}, not cosine, dot or euclidean; pass normalize=True"
            )
        return str(said)

    def encode_queries(self, queries: list[str]) -> Vectors:
        queries = check_queries(queries)
        few = 0 < len(queries) <= _FEW and all(len(query) <= _SHORT for query in queries)
        bert = self._bert if few else None
        if bert is None:
            return self._in_float32._encode(queries, self.query_prompt, "encode_query")
        before = self._prompt(bert, self.query_prompt, "encode_query")
        vectors = bert.encode([(bert.default_prompt if before is None else before) + query for query in queries])
        return self._comparable(vectors, "encode_query")

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self._encode(check_queries(passages, "passage", "passages"), self.passage_prompt, "encode_document")

    def cut_passages(self, passages: list[str]) -> int:
        passages = check_queries(passages, "passage", "passages")
        model = self.open_model()
        prompt = self._prompt(model, self.passage_prompt, "encode_document") or ""
        prompted = [prompt + passage for passage in passages]
        if isinstance(model, OnnxModel):
            return model.longer(prompted)
        return longer_than_read(model, self.model, prompted, model.max_seq_length)

    def _encode(self, texts: list[str], prompt: str | None, task: Task) -> Vectors:
        model = self.open_model()
        before = self._prompt(model, prompt, task)
        if isinstance(model, OnnxModel):
            vectors = model.encode([(model.default_prompt if before is None else before) + text for text in texts])
        elif texts:
            is_query = task == "encode_query"
            at_once = queries_at_once(self.batch_size, self.precision, self.device) if is_query else self.batch_size
            with turn_of(model), as_model_error(self.model), alone_for(texts):
                encoded = getattr(model, task)(
                    texts, prompt=before, batch_size=at_once, show_progress_bar=False, convert_to_tensor=True
                )
            vectors = cast("torch.Tensor", encoded).float().cpu().numpy()
        else:
            vectors = np.zeros((0, model.get_embedding_dimension() or 0), np.float32)
        return self._comparable(vectors, task)

    def _comparable(self, vectors: Vectors, task: Task) -> Vectors:
        """Change vectors so that their inner product ranks as the model's similarity does."""
        if self.similarity == "cosine":
            scale_to_length_one(vectors)
        elif self.similarity == "euclidean":  # -|q - p|^2 / 2 = q.p - |p|^2 / 2 - |q|^2 / 2
            half = -0.5 * np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True)
            ones = np.ones_like(half)
            vectors = np.hstack([vectors, *((ones, half) if task == "encode_query" else (half, ones))]).astype(np.float32)
        return vectors

    @cached_property
    def _bert(self) -> NumpyBert | None:
        """The model by numpy, in a process that has not imported torch; None if torch is needed."""
        by_torch = self.backend == "torch" and self.precision in ("auto", "float32") and not self.trust_remote_code
        own = type(self).load_model is SentenceTransformerEncoder.load_model
        on_gpu = self.device not in (None, "cpu") or (self.device is None and may_have_gpu())
        if not by_torch or not own or on_gpu or "torch" in sys.modules:
            return None
        key = (NumpyBert, canonical_json([self.max_length, self.model_fingerprint()]))
        return open_once(key, partial(open_bert, self.files.folder, self.max_length))

    @cached_property
    def _in_float32(self) -> SentenceTransformerEncoder:
        """This encoder in float32 if it has bfloat16 by ``auto`` on a CPU, else the encoder itself."""
        if self.used_backend != "torch" or self.precision != "auto":
            return self
        require_device(self.device)
        if self.used_precision == "float32" or not on_cpu(self.device):
            return self
        encoder = type(self)(**{key: value for key, value in self.config.items() if key != "name"} | {"precision": "float32"})
        encoder.local_only, encoder.folder, encoder.files = self.local_only, self.folder, self.files
        return encoder

    def _prompt(self, model: SentenceTransformer | OnnxModel | NumpyBert, prompt: str | None, task: Task) -> str | None:
        """The prefix of a text: the configured prompt, or the model's own; the library fails on an empty "document"."""
        if prompt is not None:
            return prompt
        names = ("query",) if task == "encode_query" else ("document", "passage", "corpus")
        return next((model.prompts[name] for name in names if model.prompts.get(name)), None)

    def load_model(self) -> SentenceTransformer | OnnxModel:
        if self.used_backend == "onnx":
            load = partial(self._load_torch, "float32", "cpu", attn_implementation="eager")
            return OnnxModel(exported_encoder(self.files, cast(ExportPrecision, self.used_precision), load), self.max_length)
        model = self._load_torch(self.used_precision, self.device)
        if self.max_length is not None:
            model.max_seq_length = self.max_length
        return model

    def _load_torch(self, precision: str, device: str | None, **settings: str) -> SentenceTransformer:
        with loading(self.model, self.files.folder, "sentence-transformers model"):
            import torch
            from sentence_transformers import SentenceTransformer

            require_device(device)
            model = SentenceTransformer(
                str(self.files.folder),
                device=device,
                trust_remote_code=self.trust_remote_code,
                model_kwargs={"dtype": getattr(torch, precision), **settings},
                local_files_only=True,
            )
            return require_words(model)


def as_encoder(encoder: str | BaseEncoder) -> BaseEncoder:
    """Return the encoder that a parameter ``encoder`` means: a model's name or folder, an encoder, or an object that is one.

    Examples:
        >>> as_encoder("intfloat/e5-small-v2")
        SentenceTransformerEncoder(model='intfloat/e5-small-v2')
    """
    if isinstance(encoder, str):
        return SentenceTransformerEncoder(encoder)
    made = encoder if isinstance(encoder, BaseEncoder) else BaseEncoder.of_value(encoder)
    if made is None:
        raise ConfigurationError(
            f"{encoder!r:.100} gives no vector for a text; pass a BaseEncoder or an object with encode(texts)"
        )
    return made


def require_cosine(encoder: BaseEncoder, user: str) -> None:
    """Raise a :class:`ModelError` if the vectors of an encoder are not to be compared by their cosine, as their user does."""
    if isinstance(encoder, SentenceTransformerEncoder) and encoder.similarity != "cosine":
        raise ModelError(
            f"{user} compares vectors by the cosine, and {encoder.model} is to be compared by {encoder.similarity}; pass "
            "normalize=True to its encoder, or use another model"
        )
