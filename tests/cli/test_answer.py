"""``nlp-retrieval answer`` prints short answers with what they cite, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from chat_server import asked, fields
from fuzz.command_lines import ended
from fuzz.command_lines import settings as sweep_settings

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever

ITEMS = [
    SearchableItem(item_id="d1", content="The fox is old. It lives in Paris.", metadata={"title": "Fox", "year": 1}),
    SearchableItem(item_id="d2", content="A fox sleeps.", metadata={"title": "\x1b[31mSleep", "year": 2}),
]


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Searcher([Bm25Retriever()]).index(ITEMS, "index")
    Path("sweep.yaml").write_text(yaml.safe_dump(sweep_settings()))
    return "index"


@pytest.fixture
def answerer(server, tmp_path):
    server.answer = lambda body: fields(
        reasoning=f"{len(asked(body, 'passages').splitlines())} lines.", citations="1.1, 2.1, 8.8", answer="Paris\x1b[0m"
    )
    model = f"model: openai/small, base_url: '{server.url}', cache_dir: '{tmp_path / 'kept'}', endpoint: {{retries: 0}}"
    return f"language_model:lm={{{model}}}"


def test_an_answer_is_printed_with_what_it_cites(index, answerer):
    done = ended(["answer", index, "Where does the fox live?", "--answerer", answerer])
    assert done.code in (0, None), done.err
    assert "Paris" in done.out
    assert "cites Fox  d1, sentences 1" in done.out
    assert "1 citations of what was not given were dropped" in done.out
    assert "\x1b[31m" not in done.out
    assert "\x1b[0m" not in done.out


def test_json_lines_hold_the_answer_and_what_was_read(index, answerer):
    done = ended(["answer", index, "-a", answerer, "--json"], b"fox\nWhere is the fox?\n")
    one, other = map(json.loads, done.out.splitlines())
    assert (one["question"], other["question"]) == ("fox", "Where is the fox?")
    assert {hit["item_id"] for hit in one["read"]} == {"d1", "d2"} == set(one["passages"])
    assert sorted(map(tuple, one["facts"])) == [("\x1b[31mSleep", 0), ("Fox", 0)]
    assert (one["dropped"], one["failed"]) == (1, False)
