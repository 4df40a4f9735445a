"""A model's files are data: code beside them runs for nobody who has not said so, and weights are never unpickled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rerankers.tiny_models import save_bert

from nlp_retrieval import CrossEncoderReranker, RetrievalResult, SearchableItem
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.errors import ModelError

from .planting import pickled

CODE = """
import os
os.makedirs({ran!r}, exist_ok=True)
from sentence_transformers.sentence_transformer.modules import Transformer
from transformers import BertConfig, BertForSequenceClassification, BertModel
class OwnConfig(BertConfig):
    model_type = "own"
class OwnModel(BertModel):
    config_class = OwnConfig
class OwnHead(BertForSequenceClassification):
    config_class = OwnConfig
class OwnModule(Transformer):
    pass
"""
AUTO_MAP = {
    "AutoConfig": "modeling_own.OwnConfig",
    "AutoModel": "modeling_own.OwnModel",
    "AutoModelForSequenceClassification": "modeling_own.OwnHead",
}
TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}


def edit(path: Path, **changes: object) -> None:
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | changes))


def own_architecture(folder: Path, ran: Path) -> None:
    """``auto_map``, as models on the hub have it."""
    edit(folder / "config.json", auto_map=AUTO_MAP, model_type="own")


def own_module(folder: Path, ran: Path) -> None:
    """A class of its own in ``modules.json``, as sentence-transformers reads it."""
    (folder / "modules.json").write_text(json.dumps([TRANSFORMER | {"type": "modeling_own.OwnModule"}]))


def own_permission(folder: Path, ran: Path) -> None:
    """A model that says of itself that it may be trusted."""
    own_architecture(folder, ran)
    (folder / "modules.json").write_text(json.dumps([TRANSFORMER]))
    trusted = {"trust_remote_code": True}
    edit(
        folder / "sentence_bert_config.json", max_seq_length=20, model_args=trusted, config_args=trusted, tokenizer_args=trusted
    )
    edit(folder / "config_sentence_transformers.json", trust_remote_code=True)


def pickled_weights(folder: Path, ran: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickled(ran))


def module_elsewhere(folder: Path, ran: Path) -> None:
    (folder / "modules.json").write_text(json.dumps([TRANSFORMER | {"path": "../elsewhere"}]))


PLANTS: dict[str, Callable[[Path, Path], None]] = {
    plant.__name__: plant for plant in (own_architecture, own_module, own_permission, pickled_weights, module_elsewhere)
}


def planted(folder: Path, plant: Callable[[Path, Path], None], *, head: bool) -> tuple[Path, Path]:
    """A model with something planted in it, and the folder that its code would make."""
    model, ran = folder / "model", folder / "ran"
    save_bert(model, head=head)
    (model / "modeling_own.py").write_text(CODE.format(ran=str(ran)))
    plant(model, ran)
    return model, ran


def rerank(model: Path) -> None:
    hit = RetrievalResult(item=SearchableItem(item_id="a", content="red fox"), score=1.0, signals={})
    CrossEncoderReranker(str(model)).rerank(["fox"], [[hit]], 1)


def test_an_encoder_runs_no_code_of_a_model(tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests) -> None:
    for encoder in [SentenceTransformerEncoder, ColbertEncoder]:
        for name, plant in PLANTS.items():
            with subtests.test(encoder=encoder, plant=name):
                tmp_path = tmp_path_factory.mktemp("case")
                model, ran = planted(tmp_path, plant, head=False)
                with pytest.raises(ModelError, match=r"does not load|not part of the model"):
                    encoder(str(model)).encode_passages(["red fox"])
                assert not ran.exists()


def test_a_cross_encoder_runs_no_code_of_a_model(tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests) -> None:
    for plant in ["own_architecture", "pickled_weights"]:
        with subtests.test(plant=plant):
            tmp_path = tmp_path_factory.mktemp("case")
            model, ran = planted(tmp_path, PLANTS[plant], head=True)
            with pytest.raises(ModelError, match="does not load"):
                rerank(model)
            assert not ran.exists()


def test_code_that_was_trusted_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    model, _ = planted(tmp_path, own_architecture, head=False)
    before = ModelFiles.of(model).fingerprint
    (model / "modeling_own.py").write_text("# another one")
    assert ModelFiles.of(model).fingerprint != before
