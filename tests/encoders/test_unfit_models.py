"""A model whose files do not fit one another loads, and fails when it computes: the error says which model it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from named_models import NAMED, TEXT

from nlp_retrieval.errors import ModelError


def with_ids_beyond_the_table(folder: Path) -> None:
    """As after a tokenizer was saved into the folder of another model."""
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text("utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    for word in TEXT.lower().split():
        if word in vocabulary:
            vocabulary[word] += 100_000
    path.write_text(json.dumps(tokenizer), "utf-8")


@pytest.mark.filterwarnings("ignore")
def test_a_token_without_a_row_in_the_table_is_a_model_error(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for kind in ["encoder", "encoder by onnx", "pylate", "splade", "cross-encoder", "onnx"]:
        with subtests.test(kind=kind):
            tmp_path = tmp_path_factory.mktemp("case")
            named = NAMED[kind]
            named.save(tmp_path / "model", 0)
            with_ids_beyond_the_table(tmp_path / "model")
            component = named.component(tmp_path / "model")
            with pytest.raises(ModelError, match=r"fails at these texts: |cannot be exported "):
                named.result(component)


@pytest.mark.filterwarnings("ignore")
def test_a_folder_without_the_files_of_its_tokenizer_is_a_model_error(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for kind in ["encoder", "encoder by onnx", "pylate", "splade", "cross-encoder"]:
        with subtests.test(kind=kind):
            folder = tmp_path_factory.mktemp("case") / "model"
            NAMED[kind].save(folder, 0)
            for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
                (folder / name).unlink(missing_ok=True)
            with pytest.raises(ModelError, match=r"its tokenizer knows no word|does not load"):
                NAMED[kind].result(NAMED[kind].component(folder))
