"""Cross-encoders of a few hundred weights, made on the spot: a random BERT for torch, and an ONNX graph written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = "who wrote the novel that kubrick filmed red fox blue whale green tree köln 東京 film shining . ,".split()
MOST_TOKENS = 40


def tokenizer() -> Tokenizer:
    made = Tokenizer(WordLevel({word: number for number, word in enumerate([*SPECIAL, *WORDS])}, unk_token="[UNK]"))
    made.normalizer = Lowercase()
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", SPECIAL.index("[CLS]")), ("[SEP]", SPECIAL.index("[SEP]"))],
    )
    return made


def save_bert(folder: Path, labels: int = 1, seed: int = 0, *, head: bool = True, dtype: str = "float32") -> Path:
    """A BERT of one random layer in the layout of transformers, stored in a dtype; without a head it is a plain encoder."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=MOST_TOKENS,
        num_labels=labels,
        initializer_range=0.3,  # so that scores are as far apart as a trained model's
    )
    model = BertForSequenceClassification(config) if head else BertModel(config)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    _save_tokenizer(folder, ["input_ids", "token_type_ids", "attention_mask"])
    return folder


def save_encoder_without_types(folder: Path, kind: str, dtype: str) -> Path:
    """A plain encoder of one random layer that takes no token types: "distilbert", "mpnet" or "roberta", stored in a dtype."""
    import torch
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "pad_token_id": 0}
    if kind == "distilbert":
        sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32, "pad_token_id": 0}
    vocabulary = {"vocab_size": len(SPECIAL) + len(WORDS), "max_position_embeddings": MOST_TOKENS + 2}
    config = AutoConfig.for_model(kind, **sizes, **vocabulary, initializer_range=0.3)
    AutoModel.from_config(config).to(getattr(torch, dtype)).save_pretrained(folder)
    _save_tokenizer(folder, ["input_ids", "attention_mask"])
    return folder


def _save_tokenizer(folder: Path, inputs: list[str]) -> None:
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer(),
        model_max_length=MOST_TOKENS,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=inputs,
    ).save_pretrained(folder)


class TinyOnnx:
    """A graph that adds up a vector per token and per side, all divided by the largest value in the whole batch.

    That division is what dynamic quantisation does to activations: a pair's logits depend on what it is batched with.

    Args:
        labels: logits per pair.
        seed: of the weights.
    """

    def __init__(self, labels: int = 2, seed: int = 0) -> None:
        draw = np.random.default_rng(seed)
        self.words = draw.uniform(0.5, 1.5, (len(SPECIAL) + len(WORDS), labels)).astype(np.float32)
        self.sides = draw.uniform(0.0, 0.5, (2, labels)).astype(np.float32)

    def logits(self, query: str, passage: str) -> NDArray[np.float32]:
        """What the graph computes for one pair on its own."""
        encoded = tokenizer().encode(query, passage)
        values = self.words[encoded.ids] + self.sides[encoded.type_ids]
        return (values / values.max()).sum(axis=0)

    def save(self, folder: Path, file: str = "model.onnx") -> Path:
        """Write ``tokenizer.json`` and the graph, as onnx.proto3 defines it."""
        names = ["input_ids", "attention_mask", "token_type_ids"]
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        tokenizer().save(str(folder / "tokenizer.json"))
        constants = {"words": self.words, "sides": self.sides, "last": np.array([2]), "second": np.array([1])}
        graph = [
            _node("Gather", ["words", names[0]], "of_words"),
            _node("Gather", ["sides", names[2]], "of_sides"),
            _node("Add", ["of_words", "of_sides"], "values"),
            _node("ReduceMax", ["values"], "largest", keepdims=0),
            _node("Div", ["values", "largest"], "scaled"),
            _node("Cast", [names[1]], "mask", to=1),
            _node("Unsqueeze", ["mask", "last"], "masks"),
            _node("Mul", ["scaled", "masks"], "masked"),
            _node("ReduceSum", ["masked", "second"], "logits", keepdims=0),
            _text(2, "tiny"),
            *(_bytes(5, _tensor(name, values)) for name, values in constants.items()),
            *(_bytes(11, _value(name, 7, 2)) for name in names),
            _bytes(12, _value("logits", 1, 2)),
        ]
        opset = _text(1, "") + _number(2, 13)
        (folder / file).write_bytes(_number(1, 8) + _bytes(8, opset) + _bytes(7, b"".join(graph)))
        return folder


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, content: str) -> bytes:
    return _bytes(field, content.encode())


def _node(kind: str, inputs: list[str], output: str, **settings: int) -> bytes:
    attributes = (_bytes(5, _text(1, key) + _number(3, value) + _number(20, 2)) for key, value in settings.items())
    return _bytes(1, b"".join([*(_text(1, name) for name in inputs), _text(2, output), _text(4, kind), *attributes]))


def _tensor(name: str, values: NDArray[np.generic]) -> bytes:
    kind = 1 if values.dtype == np.float32 else 7
    return b"".join(_number(1, size) for size in values.shape) + _number(2, kind) + _text(8, name) + _bytes(9, values.tobytes())


def _value(name: str, kind: int, dimensions: int) -> bytes:
    shape = b"".join(_bytes(1, _text(2, f"{name}_{number}")) for number in range(dimensions))
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))
