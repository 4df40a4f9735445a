"""Encoding by sentence-transformers: any bi-encoder of the hub, or a local folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, cast

import numpy as np
from pydantic import Field

from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.model_turns import turn_of
from nlp_retrieval.encoders.own_weights import own_weights
from nlp_retrieval.encoders.shared_models import ModelHolder
from nlp_retrieval.errors import DependencyError, ModelError

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer, SparseEncoder

Task = Literal["encode_query", "encode_document"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
Backend = Literal["torch", "onnx", "openvino"]

_MARKS = 8


class SentenceTransformerEncoder(ModelHolder["SentenceTransformer"], BaseEncoder):
    """A bi-encoder of the sentence-transformers library (Reimers and Gurevych, EMNLP 2019).

    The model is loaded at first use, and shared by all encoders with equal settings. Its files are fingerprinted when the
    fingerprint is first needed; if they change between then and loading, using the encoder is an error.

    Args:
        model: a hub name, or a local folder saved by sentence-transformers. A name is looked for in the hub's cache, then
            in installed packages that carry it, then on the hub.
        query_prompt: put before every query; by default what the model itself defines.
        passage_prompt: put before every passage; by default what the model itself defines.
        normalize: scale vectors to length 1, so that the inner product is the cosine.
        precision: of the arithmetic; ``auto`` is bfloat16 on CPUs with AMX and on GPUs that have it, else float32;
            vectors are float32 in any case.
        backend: ``torch``, or ``onnx`` or ``openvino``, where the model folder holds such an export or the library can make it.
        max_length: tokens that are read of a text; by default the model's own limit.
        batch_size: texts encoded at once; batches hold texts of similar length.
        device: ``cpu``, ``cuda``, ...; by default the best there is.
        revision: commit, tag or branch on the hub.
        trust_remote_code: run Python code that comes with the model. Off: a model that needs it does not load.
    """

    name = "sentence-transformers"
    search_only = frozenset({"batch_size", "device"})

    def __init__(
        self,
        model: str = "sentence-transformers/all-MiniLM-L6-v2",
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        normalize: bool = True,
        precision: Precision = "auto",
        backend: Backend = "torch",
        max_length: Annotated[int, Field(ge=1)] | None = None,
        batch_size: Annotated[int, Field(ge=1)] = 64,
        device: str | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
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

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self._encode(check_queries(queries), self.query_prompt, "encode_query")

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self._encode(check_queries(passages, "passage", "passages"), self.passage_prompt, "encode_document")

    def cut_passages(self, passages: list[str]) -> int:
        passages = check_queries(passages, "passage", "passages")
        model = self.open_model()
        prompt = self._prompt(model, self.passage_prompt, "encode_document") or ""
        return longer_than_read(model, [prompt + passage for passage in passages])

    def _encode(self, texts: list[str], prompt: str | None, task: Task) -> Vectors:
        model = self.open_model()
        if not texts:
            return np.zeros((0, model.get_embedding_dimension() or 0), np.float32)
        with turn_of(model):
            encoded = getattr(model, task)(
                texts,
                prompt=self._prompt(model, prompt, task),
                batch_size=self.batch_size,
                show_progress_bar=False,
                convert_to_tensor=True,
            )
        vectors: Vectors = cast("torch.Tensor", encoded).float().cpu().numpy()
        if self.normalize:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where(lengths > 0, lengths, 1.0)
        return vectors

    def _prompt(self, model: SentenceTransformer, prompt: str | None, task: Task) -> str | None:
        """What is put before a text: the configured prompt, or the model's own; the library fails on an empty "document"."""
        if prompt is not None:
            return prompt
        names = ("query",) if task == "encode_query" else ("document", "passage", "corpus")
        return next((model.prompts[name] for name in names if model.prompts.get(name)), None)

    def load_model(self) -> SentenceTransformer:
        path = str(self.files.folder)
        try:
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging as transformers_logging

            # its progress bar would disturb the one of the command line
            transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]

            dtype = getattr(torch, resolved_precision(self.precision, self.device))
            model = SentenceTransformer(
                path,
                device=self.device,
                backend=self.backend,
                trust_remote_code=self.trust_remote_code,
                model_kwargs={"dtype": dtype} if self.backend == "torch" else {},
                local_files_only=True,
            )
        except ImportError as error:
            raise DependencyError(
                f"{self.backend} encoding of {self.model} needs a package that is not installed ({error}): "
                f"pip install 'nlp_retrieval[dense]' 'sentence-transformers[{self.backend}]'"
            ) from error
        except Exception as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelError(f"{self.model} ({path}) does not load as a sentence-transformers model: {reason}") from error
        own_weights(model)
        if self.max_length is not None:
            model.max_seq_length = self.max_length
        return model


def longer_than_read(model: SentenceTransformer | SparseEncoder, texts: list[str]) -> int:
    """Return how many texts are longer than a model reads; 0 where that is unknown."""
    most = model.max_seq_length
    if most is None or not callable(model.tokenizer):
        return 0
    # a token has at least one byte, except the few that mark the beginning and end of a text
    suspects = [text for text in texts if len(text.encode()) > most - _MARKS]
    with turn_of(model):
        whole = model.tokenizer(suspects, truncation=False, verbose=False)["input_ids"] if suspects else []
    return sum(len(tokens) > most for tokens in whole)


def resolved_precision(precision: Precision, device: str | None) -> str:
    """What ``auto`` means on this machine."""
    if precision != "auto":
        return precision
    import torch

    if device != "cpu" and torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if torch.cpu.get_capabilities().get("amx_bf16", False) else "float32"
