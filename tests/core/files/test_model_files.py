"""Every file of a model counts, wherever it lies, and only files of the model may be loaded with it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from rerankers.tiny_models import save_bert

from nlp_retrieval import CrossEncoderReranker, SentenceTransformerEncoder
from nlp_retrieval.core.files.model_files import ModelFiles
from nlp_retrieval.errors import ModelError


def fingerprint_of_folder(path: Path) -> str:
    return ModelFiles.of(path).fingerprint


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "1_Dense").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "1_Dense" / "model.safetensors").write_bytes(b"more weights")
    return folder


def edit(path: Path, **changes: object) -> None:
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | changes))


def test_the_fingerprint_is_of_names_and_contents_in_order(model: Path) -> None:
    by_hand = hashlib.sha256()
    for name in ("config.json", "model.safetensors", "1_Dense/model.safetensors"):
        by_hand.update(f"{name}\0{hashlib.sha256((model / name).read_bytes()).hexdigest()}\n".encode())
    assert fingerprint_of_folder(model) == by_hand.hexdigest()


def test_the_layout_of_the_hub_cache_is_the_model_itself(model: Path, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    for number, file in enumerate(path for path in model.rglob("*") if path.is_file()):
        shutil.copy(file, blobs / str(number))
        link = snapshot / file.relative_to(model)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blobs / str(number))
    assert fingerprint_of_folder(snapshot) == fingerprint_of_folder(model)


def test_a_pipe_is_not_waited_for(model: Path) -> None:
    os.mkfifo(model / "weights.bin")
    with pytest.raises(ModelError, match=r"weights.bin .*not a regular file"):
        fingerprint_of_folder(model)


def test_a_folder_without_a_model_has_no_fingerprint(tmp_path: Path) -> None:
    for name in ["README.md"]:
        (tmp_path / name).write_text("x")
    with pytest.raises(ModelError, match="there is no model in"):
        fingerprint_of_folder(tmp_path)
    with pytest.raises(ModelError, match="there is no model folder at"):
        fingerprint_of_folder(tmp_path / "nowhere")


def test_a_file_written_at_once_again_with_its_old_time_is_another(model: Path) -> None:
    file = model / "model.safetensors"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    prints = []
    for number in range(20):
        file.write_bytes(b"%07d" % number)
        os.utime(file, ns=times)
        prints.append(fingerprint_of_folder(model))
    assert len(set(prints)) == 20


def saved(folder: Path) -> Path:
    """A model as sentence-transformers saves it, and another beside it."""
    for seed, name in enumerate(("model", "other")):
        save_bert(folder / name, head=False, seed=seed)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": 0, "name": path or "0", "path": path, "type": f"sentence_transformers.models.{kinds[path]}"} for path in kinds
    ]
    (folder / "model" / "modules.json").write_text(json.dumps(modules))
    (folder / "model" / "1_Pooling").mkdir()
    (folder / "model" / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 16}')
    return folder / "model"


def shards(model: Path) -> None:
    from safetensors import safe_open

    with safe_open(model / "model.safetensors", "pt") as weights:
        names = dict.fromkeys(weights.keys(), "../other/model.safetensors")
    (model / "model.safetensors").unlink()
    edit(model / "model.safetensors.index.json", metadata={}, weight_map=names)


def tokenizer_elsewhere(model: Path) -> None:
    edit(model / "sentence_bert_config.json", tokenizer_name_or_path=str(model.parent / "other"))


def adapter(model: Path) -> None:
    edit(model / "adapter_config.json", base_model_name_or_path="organisation/base", peft_type="LORA")


LEADING_OUT = [shards, tokenizer_elsewhere, adapter]


@pytest.mark.parametrize("plant", LEADING_OUT, ids=lambda plant: plant.__name__)
def test_settings_that_lead_out_of_the_folder_are_refused(plant: object, tmp_path: Path) -> None:
    model = saved(tmp_path)
    (model / "adapters").mkdir()
    adapter(model / "adapters")  # of the model's own code: no fault
    assert SentenceTransformerEncoder(str(model)).index_identity()
    plant(model)  # type: ignore[operator]
    for component in (SentenceTransformerEncoder(str(model)), CrossEncoderReranker(str(model))):
        with pytest.raises(ModelError, match=r"not (part of the model|in this folder)"):
            component.index_identity()
