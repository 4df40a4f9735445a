"""``--workers`` and ``--ray``, as a shell gives them."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import yaml
from static_models import save_static

from cli.commands import refused, run

TEXTS = [f"text number {number} of the harbour" for number in range(1030)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of two batches, a static model, queries and gold."""
    made = tmp_path_factory.mktemp("workers")
    lines = "".join(json.dumps({"_id": f"d{row}", "text": text}) + "\n" for row, text in enumerate(TEXTS))
    (made / "corpus.jsonl").write_text(lines)
    (made / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": TEXTS[7]}) + "\n")
    (made / "qrels").mkdir()
    (made / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td7\t1\n")
    save_static(made / "model", TEXTS)
    return made


def test_what_cannot_be_a_worker_or_a_cluster_is_refused(folder: Path) -> None:
    words = (
        "index",
        "corpus.jsonl",
        "none",
        "--loader",
        "beir",
        "--retriever",
        f"faiss:encoder={{name: static, model: {folder / 'model'}}}",
    )
    refused(run(*words, "--workers", "0", folder=folder), 2, "workers=0: expected a whole number from 1")
    assert run(*words, "--workers", "two", folder=folder).returncode == 2
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    refused(run(*words, "--ray", address, folder=folder), 1, f"there is no Ray cluster at {address}", "ray start --head")
    refused(run(*words, "--ray", "ray://10.0.0.5:10001", folder=folder), 2, "pass 'auto', or host:port")


def test_a_benchmark_says_who_searched_and_where_it_was_timed(folder: Path) -> None:
    encoder = {"name": "static", "model": str(folder / "model")}
    sweep = {
        "corpus": {"loader": "beir", "path": "corpus.jsonl"},
        "queries": {"loader": "beir", "path": "."},
        "k": [5],
        "index": "benchmarked",
        "output": "run",
        "searchers": {"dense": {"retrievers": [{"name": "faiss", "encoder": encoder}]}},
    }
    (folder / "sweep.yaml").write_text(yaml.safe_dump(sweep))
    done = run("benchmark", "sweep.yaml", "--workers", "2", folder=folder)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    assert manifest["searched_by"] == {"workers": 2, "ray": None, "here": {}}
    assert manifest["timed_on"] == socket.gethostname()
