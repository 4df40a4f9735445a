"""Sparse encoders that need no download: one of hashed words, and SPLADE models of a few thousand random weights."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import numpy as np
from rerankers.tiny_models import MOST_TOKENS, SPECIAL, WORDS, tokenizer

from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.encoders.base import BaseSparseEncoder, TermWeights

_WORD = re.compile(r"\w+")


class HashedTerms(BaseSparseEncoder):
    """Each word is a term, with a weight of its own; and gives half of it to another term.

    Args:
        dimension: how many terms there are.
        seed: of numbers and weights.
        most: words that are read of a passage.
    """

    name = "hashed-terms"

    def __init__(self, dimension: int = 997, seed: int = 0, most: int = 1000) -> None:
        self._dimension = dimension
        self.seed = seed
        self.most = most

    @property
    def dimension(self) -> int:
        return self._dimension

    def encode_queries(self, queries: list[str]) -> TermWeights:
        return self._weighed([_WORD.findall(query.lower()) for query in queries])

    def encode_passages(self, passages: list[str]) -> TermWeights:
        return self._weighed([_WORD.findall(passage.lower())[: self.most] for passage in passages])

    def cut_passages(self, passages: list[str]) -> int:
        return sum(len(_WORD.findall(passage)) > self.most for passage in passages)

    def model_fingerprint(self) -> str:
        return f"hashed terms, {self._dimension}, seed {self.seed}"

    def _weighed(self, texts: list[list[str]]) -> TermWeights:
        found = []
        for words in texts:
            weights: dict[int, float] = {}
            for word in words:
                code = zlib.crc32(f"{self.seed} {word}".encode())
                weight = 0.5 + code * 0.6180339887 % 2  # no two sums are alike
                for term, share in ((code % self._dimension, 1.0), (code // 7 % self._dimension, 0.5)):
                    weights[term] = max(weights.get(term, 0.0), share * weight)
            found.append(sorted(weights.items()))
        entries = [entry for weights in found for entry in weights]
        terms, values = (np.array([entry[side] for entry in entries]) for side in (0, 1))
        return TermWeights(offsets_of([len(weights) for weights in found]), terms.astype(np.int32), values.astype(np.float32))


def save_splade(folder: Path, seed: int = 0, *, lookup: bool = False) -> Path:
    """A masked language model of one random layer with SPLADE's pooling; with ``lookup``, queries are read from a table."""
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    size = len(SPECIAL) + len(WORDS)
    masked = folder.parent / f"{folder.name}-masked"
    config = BertConfig(
        vocab_size=size,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=MOST_TOKENS,
        initializer_range=0.5,  # so that about half of the terms have a weight
    )
    BertForMaskedLM(config).save_pretrained(masked)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer(),
        model_max_length=MOST_TOKENS,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    fast.save_pretrained(masked)
    document = [Transformer(str(masked), transformer_task="fill-mask"), SpladePooling("max")]
    modules: list[torch.nn.Module] = document
    if lookup:
        table = SparseStaticEmbedding(fast, torch.rand(size) + 0.1, frozen=True)
        modules = [Router.for_query_document(query_modules=[table], document_modules=document)]
    SparseEncoder(modules=modules).save_pretrained(str(folder))
    return folder
