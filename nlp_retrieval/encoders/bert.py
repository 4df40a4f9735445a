"""Queries of BERT-type models by numpy, in float32: a first search need not wait for torch, whose import takes seconds.

A model is opened here only if its files say that it is exactly what this module computes: the BERT architecture (Devlin et al.,
2019, https://arxiv.org/abs/1810.04805) with its WordPiece tokenizer, then the mean of the token vectors or the vector of the
first token. The vectors equal those of torch in float32 up to rounding (about 3e-7).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.files.opening import read_json_file
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.encoders.base import Vectors, scale_to_length_one
from nlp_retrieval.encoders.models import as_model_error

_GPUS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")

_FREE = frozenset(
    "_name_or_path architectures transformers_version dtype torch_dtype use_cache gradient_checkpointing classifier_dropout "
    "attention_probs_dropout_prob hidden_dropout_prob initializer_range pad_token_id bos_token_id eos_token_id id2label "
    "label2id tie_word_embeddings output_past problem_type".split()
)
"""Settings of a model, and below of a tokenizer, that change no vector."""
_SIZES = frozenset(
    "hidden_size intermediate_size layer_norm_eps max_position_embeddings num_attention_heads num_hidden_layers "
    "type_vocab_size vocab_size".split()
)
_REQUIRED = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False}
_REQUIRED |= {"add_cross_attention": False, "chunk_size_feed_forward": 0, "output_attentions": False}
_READING = {"do_lower_case": False, "transformer_task": "feature-extraction", "module_output_name": "token_embeddings"} | {
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
}
_TOKENIZER: dict[str, tuple[Any, ...]] = {
    "tokenizer_class": ("BertTokenizer", "BertTokenizerFast"),
    "backend": ("tokenizers",),
    "do_basic_tokenize": (True,),
    "never_split": (None, []),
    "truncation_side": ("right",),
    "additional_special_tokens": (None, []),
    "extra_special_tokens": (None, [], {}),
} | {f"{token}_token": (f"[{token.upper()}]",) for token in ("pad", "unk", "cls", "sep", "mask")}
_TOKENIZER_FREE = frozenset(
    "name_or_path special_tokens_map_file model_max_length max_length stride padding_side is_local pad_to_multiple_of "
    "pad_token_type_id truncation_strategy local_files_only added_tokens_decoder clean_up_tokenization_spaces "
    "do_lower_case strip_accents tokenize_chinese_chars".split()
)
_WORD_PIECE = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
_SPECIAL = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}

_turn = Lock()
"""Held while a text is encoded: the number of BLAS's threads belongs to the process."""


def open_bert(folder: Path, max_length: int | None) -> NumpyBert | None:
    """Open a model; None if it is another kind of model, or a package is missing that sentence-transformers brings."""
    try:
        return NumpyBert(folder, max_length)
    except Exception:
        return None  # another kind of model: sentence-transformers says what is wrong with the files, if anything is


def may_have_gpu() -> bool:
    """Return whether torch may find a GPU here, without importing it."""
    try:
        return not version("torch").endswith("+cpu") and (sys.platform == "darwin" or any(Path(gpu).exists() for gpu in _GPUS))
    except PackageNotFoundError:
        return True


class NumpyBert:
    """A BERT-type model of sentence-transformers, open; safe in several threads."""

    def __init__(self, folder: Path, max_length: int | None = None) -> None:
        from safetensors.numpy import load
        from threadpoolctl import ThreadpoolController

        self._name = str(folder)
        config = _config(folder)
        pooling, self._scales = _pooling(folder)
        self._first_only = pooling == "cls"
        self.prompts, self.default_prompt = _prompts(folder)
        self._tokenizer = _tokenizer(folder, config, max_length)
        self._n_heads, self._epsilon = config["num_attention_heads"], np.float32(config["layer_norm_eps"])
        weights = load((folder / "model.safetensors").read_bytes())  # not mapped: the file could be overwritten
        self._take({name.removeprefix("bert."): matrix for name, matrix in weights.items()}, config)
        self._threads = ThreadpoolController()

    def encode(self, texts: list[str]) -> Vectors:
        """Return ``[texts, dimension]``, float32."""
        with _turn, self._threads.limit(limits=1, user_api="blas"), as_model_error(self._name):
            vectors = np.stack([self._vector_of(self._tokenizer.encode(text).ids) for text in texts])
        if self._scales:
            scale_to_length_one(vectors)
        return vectors

    def _take(self, weights: dict[str, NDArray[Any]], config: Mapping[str, Any]) -> None:
        """Take the matrices by their names; each must have the shape that the settings say, and none may be left."""
        width, inner = config["hidden_size"], config["intermediate_size"]

        def take(name: str, *shape: int) -> Vectors:
            matrix = weights.pop(name)
            if matrix.shape != shape or matrix.dtype != np.float32:
                raise ValueError(name)
            return matrix

        def pair(name: str, *shape: int) -> tuple[Vectors, Vectors]:
            return take(f"{name}.weight", *shape), take(f"{name}.bias", shape[0])

        self._words = take("embeddings.word_embeddings.weight", config["vocab_size"], width)
        self._positions = take("embeddings.position_embeddings.weight", config["max_position_embeddings"], width)
        self._kind = take("embeddings.token_type_embeddings.weight", config["type_vocab_size"], width)[0]
        self._norm = pair("embeddings.LayerNorm", width)
        self._layers = []
        for number in range(config["num_hidden_layers"]):
            at = f"encoder.layer.{number}"
            parts = [pair(f"{at}.attention.self.{part}", width, width) for part in ("query", "key", "value")]
            attention = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
            output = pair(f"{at}.attention.output.dense", width, width), pair(f"{at}.attention.output.LayerNorm", width)
            up, down = pair(f"{at}.intermediate.dense", inner, width), pair(f"{at}.output.dense", width, inner)
            self._layers.append((attention, *output, up, down, pair(f"{at}.output.LayerNorm", width)))
        if left := weights.keys() - {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}:
            raise ValueError(left)

    def _vector_of(self, tokens: list[int]) -> Vectors:
        hidden = self._normal(self._words[tokens] + self._kind + self._positions[: len(tokens)], self._norm)
        for attention, mixed, norm, up, down, last_norm in self._layers:
            hidden = self._normal(_linear(self._attended(_linear(hidden, attention)), mixed) + hidden, norm)
            hidden = self._normal(_linear(_gelu(_linear(hidden, up)), down) + hidden, last_norm)
        vector: Vectors = hidden[0] if self._first_only else hidden.mean(axis=0)
        return vector

    def _attended(self, projected: Vectors) -> Vectors:
        n_tokens, width = len(projected), projected.shape[1] // 3
        heads = projected.reshape(n_tokens, 3, self._n_heads, -1).transpose(1, 2, 0, 3)  # [3, heads, tokens, dimension]
        query, key, value = heads
        scores = query @ key.transpose(0, 2, 1)
        scores *= np.float32(1 / math.sqrt(heads.shape[-1]))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed: Vectors = (weights @ value).transpose(1, 0, 2).reshape(n_tokens, width)
        return mixed

    def _normal(self, hidden: Vectors, norm: tuple[Vectors, Vectors]) -> Vectors:
        hidden = hidden - hidden.mean(axis=-1, keepdims=True)
        variance = np.einsum("ij,ij->i", hidden, hidden)[:, None] / np.float32(hidden.shape[1])
        hidden /= np.sqrt(variance + self._epsilon)
        return hidden * norm[0] + norm[1]


def _linear(hidden: Vectors, layer: tuple[Vectors, Vectors]) -> Vectors:
    product: Vectors = hidden @ layer[0].T
    product += layer[1]
    return product


def _gelu(x: Vectors) -> Vectors:
    """``x * P(X <= x)`` of a normal X; the error function by Abramowitz and Stegun, 7.1.26, to 1.5e-7."""
    z = np.abs(x) * np.float32(math.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    tail = np.full_like(t, 1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail *= t
        tail += np.float32(coefficient)
    tail *= t
    tail *= np.exp(-z * z)
    tail *= np.float32(0.5)
    return x * np.where(x > 0, 1 - tail, tail)


# What the files say. Anything that is not known here raises an error.


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = read_json_file(folder / "config.json")
    for key, value in config.items():
        if key not in _FREE and key not in _SIZES and (key not in _REQUIRED or value != _REQUIRED[key]):
            raise ValueError(key)
    if config["model_type"] != "bert" or config["hidden_act"] != "gelu" or config.get("architectures") != ["BertModel"]:
        raise ValueError("config.json")
    return config


def _pooling(folder: Path) -> tuple[str, bool]:
    """``mean`` or ``cls``, and whether vectors are scaled to length 1: the modules that follow the transformer."""
    modules: list[dict[str, str]] = read_json_file(folder / "modules.json")
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    known = {"idx", "name", "path", "type"}
    if (
        kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
        or modules[0]["path"]
        or not all(module["type"].startswith("sentence_transformers.") and known.issuperset(module) for module in modules)
    ):
        raise ValueError("modules.json")
    for module in modules[2:]:
        file = folder / module["path"] / "config.json"
        if file.exists() and set(read_json_file(file).values()) != {"sentence_embedding"}:
            raise ValueError(str(file))
    config: dict[str, Any] = read_json_file(folder / modules[1]["path"] / "config.json")
    known = {"pooling_mode", "include_prompt", "embedding_dimension", "word_embedding_dimension"}
    modes = {key.removeprefix("pooling_mode_"): value for key, value in config.items() if key not in known}
    used = [mode for mode, value in modes.items() if value is not False] or [config["pooling_mode"]]
    mode = {"mean_tokens": "mean", "cls_token": "cls"}.get(used[0], used[0])
    if len(used) != 1 or mode not in ("mean", "cls") or config.get("include_prompt", True) is not True:
        raise ValueError("pooling")
    return str(mode), len(modules) == 3


def _prompts(folder: Path) -> tuple[dict[str, str], str]:
    """The prompts by name, and the one that is used without a name."""
    file = folder / "config_sentence_transformers.json"
    settings: dict[str, Any] = read_json_file(file) if file.exists() else {}
    known = {"__version__", "prompts", "default_prompt_name", "similarity_fn_name", "model_type"}
    if any(value is not None for key, value in settings.items() if key not in known):
        raise ValueError(file.name)
    prompts = {str(name): str(prompt) for name, prompt in (settings.get("prompts") or {}).items()}
    return prompts, prompts.get(settings.get("default_prompt_name") or "", "")


def _tokenizer(folder: Path, config: Mapping[str, Any], max_length: int | None) -> Any:
    """The tokenizer that transformers makes of these files, which cuts texts where sentence-transformers does."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    described: dict[str, Any] = json.loads(file.read_bytes())
    settings: dict[str, Any] = read_json_file(folder / "tokenizer_config.json")
    reading: dict[str, Any] = read_json_file(folder / "sentence_bert_config.json")
    limit = max_length or reading.get("max_seq_length") or settings["model_max_length"]
    if any(key != "max_seq_length" and value != _READING.get(key) for key, value in reading.items()):
        raise ValueError("sentence_bert_config.json")
    known = all(key in _TOKENIZER_FREE or value in _TOKENIZER.get(key, ()) for key, value in settings.items())
    if not 2 < limit <= config["max_position_embeddings"] or not known:
        raise ValueError("tokenizer_config.json")
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
        "strip_accents": settings.get("strip_accents"),
        "lowercase": settings.get("do_lower_case", True),
    }
    fits = (
        "tokenizer_class" in settings
        and described["normalizer"] == normalizer
        and described["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and {key: value for key, value in described["model"].items() if key != "vocab"} == _WORD_PIECE
        and {token["content"] for token in described["added_tokens"]} == _SPECIAL
        and not any(token["normalized"] or token["single_word"] for token in described["added_tokens"])
        and not (folder / "added_tokens.json").exists()
    )
    tokenizer = Tokenizer.from_file(str(file))
    ids = [tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]")]
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    if not fits or tokenizer.encode("").ids != ids or tokenizer.get_vocab_size() != config["vocab_size"]:
        raise ValueError("tokenizer.json")
    return tokenizer
