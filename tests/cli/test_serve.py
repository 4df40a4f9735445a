"""``nlp-retrieval serve`` where it serves nobody: what it says before it begins."""

from __future__ import annotations

import pytest
from service.running import make_index

from .commands import refused, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve")
    make_index(folder / "index", 3)
    return folder


def test_a_check_opens_everything_and_ends(folder):
    done = run("serve", "index", "--check", "--port", "0", folder=folder)
    assert done.returncode == 0
    assert "the index index can be served on http://127.0.0.1:" in done.stderr


def test_what_cannot_be_served_is_said_in_one_line(folder, subtests):
    for words, code, said in (
        (["nowhere"], 3, "nowhere is no folder"),
        (["index", "--as", "indx"], 2, "--as indx: did you mean 'index'"),
        (["index", "--set", "fuson=rrf"], 2, "--set fuson: served as index, did you mean 'fusion'"),
        (["index", "--host", "0.0.0.0"], 2, "no token is set: anyone could send requests"),
        (["index", "--log-format", "xml"], 2, "Invalid value for '--log-format': 'xml' is not one of 'text', 'json'"),
        (["index", "-r", "bm25:stemmer=none"], 3, "bm25"),
    ):
        with subtests.test(said):
            refused(run("serve", *words, folder=folder, NLP_RETRIEVAL_TOKEN=""), code, said)
