"""``nlp-retrieval hipporag extract`` fills a store, says what it did, and ends with 1 while something is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_server import server
from fuzz.command_lines import ended

from nlp_retrieval.systems.hipporag.store import KnowledgeStore
from systems.hipporag.knowledge.reading_model import by_the_rule, corpus, knowledge_of

__all__ = ["server"]

ITEMS = corpus(12)


@pytest.fixture
def extract(server, tmp_path, monkeypatch):
    """Runs the command on the corpus."""
    monkeypatch.chdir(tmp_path)
    server.answer = by_the_rule
    rows = ({"id": item.item_id, "content": item.content} for item in ITEMS)
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(*more, store="known.db"):
        return ended(["hipporag", "extract", "corpus.jsonl", store, "--lm", "openai/small", "--lm-base-url", server.url, *more])

    return run


def test_a_corpus_is_extracted_once_and_the_counts_are_told(server, extract):
    done = extract("--price", "10,100")
    assert done.code in (0, None), done.err
    assert "12 passages: 12 extracted, 0 already stored, 0 without a usable answer" in done.err
    assert "24 entities and 12 triples (0 unusable, dropped)" in done.err
    assert "12 calls (0 failed)" in done.err
    assert "price 0.0240" in done.err
    with KnowledgeStore("known.db") as store:
        assert store.source().of(ITEMS) == [knowledge_of(item) for item in ITEMS]
    again = extract("--json")
    assert json.loads(again.out)["kept"] == 12
    assert server.calls == 12


def test_a_look_at_the_first_passages_is_part_of_the_whole(server, extract):
    assert "5 passages: 5 extracted" in extract("--first", "5").err
    done = json.loads(extract("--json", "--passages-per-call", "1").out)
    assert (done["kept"], done["extracted"], server.calls) == (5, 7, 12)


def test_what_is_left_is_told_by_the_exit_code(server, extract):
    server.answer = lambda body: "I would rather not." if "Name3 " in str(body) else by_the_rule(body)
    done = extract()
    assert done.code == 1
    assert "11 extracted, 0 already stored, 1 without a usable answer" in done.err
    assert "run the same command again" in done.err
    server.answer = by_the_rule
    assert extract().code in (0, None)
    assert "Traceback" not in done.err


def test_a_key_that_is_refused_is_told_and_not_shown(server, extract, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "sk-this-is-a-secret-key-123")
    server.answer = lambda body: 401
    done = extract("--lm-option", "api_key_env=SOME_KEY", "--calls-at-once", "1")
    assert done.code == 1
    assert "stopped early: not asked any more" in done.err
    assert "11 not requested" in done.err
    assert "this-is-a-secret" not in done.err


def test_another_prompt_or_model_is_kept_beside_the_first(extract):
    extract()
    done = extract("--passages-per-call", "3")
    assert "also holds 1 extractions with another prompt or model" in done.err
    with KnowledgeStore("known.db") as store:
        assert [None in store.source(one.extraction_id).of(ITEMS) for one in store.extractions()] == [False, False]


@pytest.mark.parametrize(
    ("words", "store", "code", "message"),
    [
        (["--price", "cheap"], "known.db", 2, "give two numbers"),
        (["--price", "-1,2"], "known.db", 2, "is not a price"),
        (["--passages-per-call", "21"], "known.db", 2, "less than or equal to 20"),
        (["--lm-option", "nothing=1"], "known.db", 2, "nothing"),
        ([], "no/such/folder/known.db", 2, "cannot be read"),
        ([], "sqlite://", 2, "in memory is not kept"),
        ([], "a?b.db", 2, "without a question mark"),
        ([], "corpus.jsonl", 2, "file is not a database"),
        ([], "postgresql+psycopg://me:s3cret-word@127.0.0.1:1/x", 2, "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_asks_nothing(server, extract, words, store, code, message):
    done = extract(*words, store=store)
    assert done.code == code
    assert message in done.err
    assert "s3cret" not in done.err
    assert server.calls == 0
