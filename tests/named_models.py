"""A tiny model for every component that opens one, in a folder, with files that a list of suffixes would forget."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from colbert_checkpoints import save_bert as save_colbert_bert
from colbert_checkpoints import save_pylate, save_stanford
from rerankers.tiny_models import TinyOnnx, save_bert
from sparse_models import save_splade
from static_models import save_static

from nlp_retrieval import CrossEncoderReranker, OverlapReranker, SearchableItem, SentenceTransformerEncoder, StaticEncoder
from nlp_retrieval.core.components.component import Component
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.encoders.splade import SpladeEncoder
from nlp_retrieval.retrievers.link_graph.extractors import SharedEntities

TEXT = "Red fox and blue whale"
MODULES = [
    ("", "sentence_transformers.models.Transformer"),
    ("1_Pooling", "sentence_transformers.models.Pooling"),
    ("2_Dense", "sentence_transformers.models.Dense"),
]
PEOPLE = {"README.md": b"# A model", "LICENSE": b"MIT", ".gitattributes": b"* lfs", "architecture.png": b"png"}
"""What is read by people alone."""


@dataclass(frozen=True)
class Named:
    """A kind of model."""

    save: Callable[[Path, int], None]
    component: Callable[[Path], Component]
    result: Callable[[Component], object]
    weights: str = "model.safetensors"


def _save_encoder(folder: Path, seed: int) -> None:
    """Three modules, the last behind a symbolic link to a folder elsewhere."""
    import torch
    from safetensors.torch import save_file

    save_bert(folder, head=False, seed=seed)
    modules = [{"idx": n, "name": str(n), "path": path, "type": kind} for n, (path, kind) in enumerate(MODULES)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 16}))
    elsewhere = folder.parent / f"{folder.name}-dense"
    elsewhere.mkdir(exist_ok=True)
    weights = torch.randn(8, 16, generator=torch.Generator().manual_seed(seed))
    save_file({"linear.weight": weights}, elsewhere / "model.safetensors")
    config = {"in_features": 16, "out_features": 8, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
    (elsewhere / "config.json").write_text(json.dumps(config))
    (folder / "2_Dense").symlink_to(elsewhere)


def _save_late(save: Callable[[Path, Path], Path]) -> Callable[[Path, int], None]:
    def saved(folder: Path, seed: int) -> None:
        from safetensors.numpy import load_file, save_file

        bert = folder.parent / f"{folder.name}-bert"
        save_colbert_bert(bert)
        save(bert, folder)
        shutil.rmtree(bert)
        (folder / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | {"seed": seed}))
        weights = folder / "model.safetensors"
        rise = {key: np.linspace(1, 1 + seed / 5, value.size, dtype=np.float32) for key, value in load_file(weights).items()}
        turned = {key: value * rise[key].reshape(value.shape) for key, value in load_file(weights).items()}
        save_file(turned, weights, metadata={"format": "pt"})

    return saved


def _save_onnx(folder: Path, seed: int) -> None:
    TinyOnnx(seed=seed).save(folder)


def _save_static(folder: Path, seed: int) -> None:
    save_static(folder, [TEXT, "Green tree"], seed=seed)


def _save_pipeline(folder: Path, seed: int) -> None:
    import spacy

    made = spacy.blank("en")
    pattern = "red fox" if seed % 2 == 0 else "blue whale"
    made.add_pipe("entity_ruler").add_patterns([{"label": "ANIMAL", "pattern": pattern}])
    made.to_disk(folder)


def _score(component: Component) -> object:
    items = [SearchableItem(item_id="a", content="who filmed the red fox"), SearchableItem(item_id="b", content=TEXT.lower())]
    return component.score_pairs([TEXT.lower()] * 2, items)["score"].tolist()  # type: ignore[attr-defined]


def _encode(component: Component) -> object:
    found = component.encode_passages([TEXT, TEXT.lower()])  # type: ignore[attr-defined]
    return np.concatenate(list(found)).tolist()


def _weigh(component: Component) -> object:
    found = component.encode_passages([TEXT, TEXT.lower()])  # type: ignore[attr-defined]
    return [found.terms.tolist(), found.weights.tolist()]


def _entities(component: Component) -> object:
    return [sorted(found) for found in component._finder.find([TEXT, TEXT.lower()])]  # type: ignore[attr-defined]


NAMED = {
    "encoder": Named(
        _save_encoder, lambda folder: SentenceTransformerEncoder(str(folder), precision="float32", device="cpu"), _encode
    ),
    "encoder by onnx": Named(
        _save_encoder,
        lambda folder: SentenceTransformerEncoder(str(folder), backend="onnx", precision="float32"),
        _encode,
    ),
    "encoder by onnx, 8 bits": Named(
        _save_encoder, lambda folder: SentenceTransformerEncoder(str(folder), backend="onnx", precision="int8"), _encode
    ),
    "static": Named(_save_static, StaticEncoder, _encode),
    "pylate": Named(
        _save_late(save_pylate), lambda folder: ColbertEncoder(str(folder), precision="float32", device="cpu"), _encode
    ),
    "stanford": Named(
        _save_late(save_stanford), lambda folder: ColbertEncoder(str(folder), precision="float32", device="cpu"), _encode
    ),
    "splade": Named(
        lambda folder, seed: save_splade(folder, seed) and None, lambda folder: SpladeEncoder(str(folder), device="cpu"), _weigh
    ),
    "cross-encoder": Named(
        lambda folder, seed: save_bert(folder, seed=seed) and None,
        lambda folder: CrossEncoderReranker(str(folder), device="cpu"),
        _score,
    ),
    "onnx": Named(_save_onnx, lambda folder: CrossEncoderReranker(str(folder), backend="onnx"), _score, "model.onnx"),
    "overlap": Named(
        _save_pipeline, lambda folder: OverlapReranker(spacy_pipeline=str(folder)), _score, "entity_ruler/patterns.jsonl"
    ),
    "entities": Named(
        _save_pipeline, lambda folder: SharedEntities(mentions=str(folder)), _entities, "entity_ruler/patterns.jsonl"
    ),
}
