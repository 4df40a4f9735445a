"""``nlp-retrieval index`` with an encoder behind an endpoint, which fails and is taken up."""

from __future__ import annotations

import json
from pathlib import Path

from embedding_server import embedded, embedding_server

from cli.commands import refused, run


def test_an_index_that_failed_in_the_second_batch_is_taken_up_and_says_so(tmp_path: Path) -> None:
    texts = [f"text number {number}" for number in range(1030)]
    lines = "".join(json.dumps({"id": f"d{row}", "content": text}) + "\n" for row, text in enumerate(texts))
    (tmp_path / "items.jsonl").write_text(lines)
    with embedding_server(lambda body: 400 if texts[-1] in body["input"] else embedded(body)) as server:
        encoder = f"{{name: http, base_url: '{server.url}', model: small, cache_dir: '{tmp_path / 'kept'}'}}"
        words = ("index", "items.jsonl", "index", "--retriever", f"faiss:encoder={encoder}")
        refused(run(*words, folder=tmp_path), 1, f"{server.url}: HTTP 400")
        server.answer = embedded
        done = run(*words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "1,024 passages were not encoded again: an interrupted run had done so" in done.stdout + done.stderr
        asked = len(server.texts)
        refused(run("search", "index", texts[7], folder=tmp_path), 2, f"send texts to the server '{server.url}'", "--trust")
        done = run("search", "index", texts[7], "-k", "1", "--trust", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "d7" in done.stdout
        assert len(server.texts) == asked, "its vector is on disk"
