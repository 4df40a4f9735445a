"""Token vectors by sentence-transformers' ``MultiVectorEncoder``: ColBERT checkpoints, or any encoder read token by token."""

from __future__ import annotations

import copy
import string
import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import ENCODER_RULES, may_set
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.backends import (
    ExportPrecision,
    Precision,
    check_choice,
    compute_by_graph,
    queries_at_once,
    require_device,
    resolved_precision,
)
from nlp_retrieval.encoders.base import BaseTokenEncoder, Vectors, scale_to_length_one
from nlp_retrieval.encoders.models import (
    ModelHolder,
    alone_for,
    architectures_of,
    as_model_error,
    json_of,
    loading,
    longer_than_read,
    require_words,
    setting_of,
    turn_of,
)
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Transformer

_EARLY_PYLATE = ("query_prefix", "document_prefix")


def is_multi_vector(folder: Path) -> bool:
    """Return whether a model folder holds a late-interaction checkpoint: to others, the library adds random weights."""
    saved, modules = folder / "config_sentence_transformers.json", json_of(folder / "modules.json")
    if not isinstance(modules, list):
        return any(name == "HF_ColBERT" or name.endswith("ForRetrieval") for name in architectures_of(folder))
    if setting_of(saved, "model_type") in ("MultiVectorEncoder", "ColBERT"):  # of sentence-transformers and PyLate
        return True
    types = {str(module.get("type")).rpartition(".")[2] for module in modules if isinstance(module, dict)}
    return "Dense" in types and ("MultiVectorMask" in types or any(setting_of(saved, key) is not None for key in _EARLY_PYLATE))


def token_by_token(path: str, settings: dict[str, Any]) -> MultiVectorEncoder:
    """Build a model that returns the vectors of any encoder's tokens, before pooling and without added weights."""
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    loaded = SentenceTransformer(path, **settings)
    if not isinstance(loaded[0], Transformer):
        raise TypeError(f"it begins with a {type(loaded[0]).__name__}, which has no token vectors")
    modules = [loaded[0], MultiVectorMask(list(string.punctuation)), Normalize("token_embeddings")]
    named = {"query": ("query",), "document": ("document", "passage", "corpus")}
    prompts = {task: next(filter(None, map(loaded.prompts.get, names)), "") for task, names in named.items()}
    return MultiVectorEncoder(modules=modules, device=settings["device"], prompts=prompts)


Task = Literal["query", "document"]


class ColbertEncoder(ModelHolder["MultiVectorEncoder"], BaseTokenEncoder):
    """One vector per token, from a late-interaction checkpoint (ColBERT; Khattab and Zaharia, SIGIR 2020).

    Checkpoints of Stanford's ColBERT (``colbert-ir/colbertv2.0``), of PyLate and of sentence-transformers are used with
    their own settings: prefixes, lengths, projection, mask tokens that fill up a query, punctuation left out of passages.

    Any other encoder is read token by token, with a warning: the vectors before pooling, passages without punctuation, queries
    without mask tokens, and a projection to fewer dimensions by a fixed random matrix, which is saved with an index.

    Args:
        model: a hub name, or a local folder.
        projection: for an encoder that is not a multi-vector checkpoint: the dimension to project to, or None for its own.
        query_prompt: put before every query; by default the model's own.
        passage_prompt: put before every passage; by default the model's own.
        max_length: tokens that are read of a passage; by default the checkpoint's.
        precision: of the arithmetic. ``auto`` is, by torch, bfloat16 on CPUs with AMX and on GPUs that have it, else float32;
            by ONNX it is ``int8``, 8-bit weights. Vectors are float32 in any case.
        backend: ``torch``, or ``onnx``, on the CPU, for ``int8`` or ``float32``.
        batch_size: texts encoded at once; batches hold texts of similar length.
        device: ``cpu``, ``cuda``, ...; by default the best there is.
        revision: commit, tag or branch on the hub.
        trust_remote_code: run Python code that comes with the model. Off: a model that needs it does not load.

    Examples:
        >>> ColbertRetriever(ColbertEncoder("colbert-ir/colbertv2.0", max_length=180), bits=4)
        ColbertRetriever(encoder=ColbertEncoder(max_length=180))
    """

    name = "colbert"
    manifest_may_set = ENCODER_RULES | may_set("backend", "projection")
    search_only = frozenset({"query_prompt", "batch_size", "device"})
    apart_from_model = frozenset({"batch_size", "projection", "query_prompt", "passage_prompt"})

    def __init__(
        self,
        model: str = "colbert-ir/colbertv2.0",
        projection: Annotated[int, Field(ge=1)] | None = 128,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        max_length: Annotated[int, Field(ge=4)] | None = None,
        precision: Precision = "auto",
        backend: Literal["torch", "onnx"] = "torch",
        batch_size: Annotated[int, Field(ge=1)] = 32,
        device: str | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        check_choice(backend, precision, device)
        self.model = model
        self.projection = projection
        self.query_prompt = query_prompt
        self.passage_prompt = passage_prompt
        self.max_length = max_length
        self.precision: Precision = "int8" if backend == "onnx" and precision == "auto" else precision
        self.backend: Literal["torch", "onnx"] = backend
        self.batch_size = batch_size
        self.device = device
        self.revision = revision
        self.trust_remote_code = trust_remote_code
        self._matrix: Vectors | None = None

    @cached_property
    def is_multi_vector(self) -> bool:
        """Whether the model is a late-interaction checkpoint, and not an encoder that is read token by token."""
        return is_multi_vector(self.files.folder)

    @property
    def dimension(self) -> int:
        matrix = self.projection_matrix()
        return self._own_dimension if matrix is None else int(matrix.shape[1])

    @property
    def _own_dimension(self) -> int:
        return cast(int, self.open_model().get_embedding_dimension())

    def index_identity(self) -> Config:
        unused = {"projection"} if self.is_multi_vector else set()
        return {key: value for key, value in super().index_identity().items() if key not in unused}

    def resolved_settings(self) -> Config:
        return {"precision": self.precision} if self.backend == "onnx" else {}

    def extra_state(self) -> dict[str, Any]:
        return super().extra_state() | {"_matrix": self._matrix}

    def provenance(self) -> dict[str, str]:
        remark = "" if self.is_multi_vector else ", read token by token"
        return {self.model: self.folder.source + remark}

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        return self._encode(check_queries(queries), "query", self.query_prompt)

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return self._encode(check_queries(passages, "passage", "passages"), "document", self.passage_prompt)

    def cut_queries(self, queries: list[str]) -> int:
        transformer = _transformer_of(self.open_model())
        expansion = transformer.query_expansion
        limit = expansion.get("length") if expansion and expansion["strategy"] == "fixed" else transformer.query_length
        return self._longer_than(limit, check_queries(queries), "query", self.query_prompt)

    def cut_passages(self, passages: list[str]) -> int:
        limit = _transformer_of(self.open_model()).document_length
        return self._longer_than(limit, check_queries(passages, "passage", "passages"), "document", self.passage_prompt)

    def projection_matrix(self) -> Vectors | None:
        if self.projection is None or self.is_multi_vector:
            return None
        if self._matrix is None:
            own = self._own_dimension
            if self.projection > own:
                raise ConfigurationError(f"projection={self.projection} is more than {self.model}'s {own} dimensions; lower it")
            self._matrix = _orthonormal(own, self.projection)
        return self._matrix

    def with_projection(self, matrix: Vectors) -> Self:
        if self.projection is None or self.is_multi_vector:
            return super().with_projection(matrix)
        other = copy.copy(self)
        other._matrix = matrix
        return other

    def _encode(self, texts: list[str], task: Task, prompt: str | None) -> list[Vectors]:
        model, matrix = self.open_model(), self.projection_matrix()
        results = [np.zeros((0, self.dimension), np.float32)] * len(texts)
        not_blank = [number for number, text in enumerate(texts) if text.strip()]
        if not not_blank:
            return results
        encode = model.encode_query if task == "query" else model.encode_document
        spoken = [texts[number] for number in not_blank]
        at_once = self.batch_size
        if task == "query" and self.backend == "torch":
            at_once = queries_at_once(at_once, self.precision, self.device)
        with turn_of(model), as_model_error(self.model), alone_for(spoken):
            encoded = encode(spoken, prompt=prompt, batch_size=at_once, show_progress_bar=False, convert_to_numpy=True)
        parts: list[Vectors] = list(encoded)
        if matrix is not None and task == "query":  # a product of other rows rounds differently
            parts = [part.astype(np.float32, copy=False) @ matrix for part in parts]
        stacked = np.concatenate(parts).astype(np.float32, copy=False)
        if matrix is not None and task != "query":
            stacked = stacked @ matrix
        scale_to_length_one(stacked)  # the model may have normalised in 16 bits only
        ends = np.cumsum([len(part) for part in parts])
        for number, vectors in zip(not_blank, np.split(stacked, ends[:-1]), strict=True):
            results[number] = vectors
        return results

    def _longer_than(self, limit: int | None, texts: list[str], task: Task, prompt: str | None) -> int:
        model = self.open_model()
        put_before = model.prompts.get(task) or "" if prompt is None else prompt
        return longer_than_read(model, self.model, [put_before + text for text in texts], limit or model.max_seq_length)

    def open_model(self) -> MultiVectorEncoder:
        is_new = self._model is None
        model = super().open_model()
        if is_new and not self.is_multi_vector:
            message = "is not a multi-vector checkpoint: it is read token by token, and was not trained for late interaction"
            warnings.warn(f"{self.model} {message}, as colbert-ir/colbertv2.0 was", RetrievalWarning, stacklevel=2)
        return model

    def load_model(self) -> MultiVectorEncoder:
        if self.backend == "torch":
            model = self._load(resolved_precision(self.precision, self.device), self.device)
        else:
            model = self._load("float32", "cpu", attn_implementation="eager")
            with as_model_error(self.model):
                compute_by_graph(model, self.files, cast(ExportPrecision, self.precision))
        if self.max_length is not None:
            _transformer_of(model).document_length = self.max_length
        return model

    def _load(self, precision: str, device: str | None, **settings: str) -> MultiVectorEncoder:
        path = str(self.files.folder)
        with loading(self.model, self.files.folder, "multi-vector model"):
            import torch
            from sentence_transformers import MultiVectorEncoder

            require_device(device)
            arguments: dict[str, Any] = {
                "device": device,
                "trust_remote_code": self.trust_remote_code,
                "model_kwargs": {"dtype": getattr(torch, precision), **settings},
                "local_files_only": True,
            }
            try:
                model = MultiVectorEncoder(path, **arguments) if self.is_multi_vector else token_by_token(path, arguments)
            except KeyError as error:  # a Stanford checkpoint without its projection, linear.weight
                raise ValueError(f"its weights hold no {error.args[0]}; download it again") from error
            return require_words(model)


def _transformer_of(model: MultiVectorEncoder) -> Transformer:
    return cast("Transformer", model[0])


def _orthonormal(rows: int, columns: int) -> Vectors:
    """A random matrix ``[rows, columns]`` with orthonormal columns; there are at most as many columns as rows."""
    basis = np.ascontiguousarray(np.random.default_rng(0).standard_normal((rows, columns)).T)
    for number in range(columns):  # Gram-Schmidt, twice, by sums in a fixed order: LAPACK's depends on the machine
        before, vector = basis[:number], basis[number]
        for _ in range(2):
            vector -= (before * (before * vector).sum(axis=1, keepdims=True)).sum(axis=0)
        vector /= np.sqrt(np.square(vector).sum())
    return np.ascontiguousarray(basis.T, np.float32)
