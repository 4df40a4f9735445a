"""What is Milvus's alone: numpy's products and the formula of BM25, index types, tokens, and Milvus Lite in a folder."""

from __future__ import annotations

import logging
import math
import re
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashed_words import HashedWords
from milvus_server import TcpServer, milvus_url

from nlp_retrieval import MilvusRetriever, SearchableItem, Searcher
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, ServerError, SourceError, UntrustedError
from nlp_retrieval.retrievers.servers.embedded import TRUSTED

from .conftest import FILTERS, QUERIES, WORDS, corpus, found


def searcher(mode: str = "dense", **settings: Any) -> Searcher:
    """A searcher on the shared server."""
    encoder = settings.pop("encoder", HashedWords(dimension=24))
    return Searcher([MilvusRetriever(encoder, mode, **({"url": milvus_url()} | settings))])  # type: ignore[arg-type]


def exact(items: list[SearchableItem], query: str, passes: Any, k: int) -> list[tuple[str, float]]:
    encoder = HashedWords(dimension=24)
    scores = encoder.encode_passages([item.text for item in items]) @ encoder.encode_queries([query])[0]
    pairs = sorted(
        ((float(scores[row]), row) for row in range(len(items)) if passes(int(items[row].item_id[1:]))), reverse=True
    )
    made: list[tuple[float, int]] = []
    for number, (score, row) in enumerate(pairs):  # scores that differ by a millionth are one
        same_level = number and pairs[number - 1][0] - score <= 1e-6
        made.append((made[-1][0] if same_level else score, row))
    return [(items[row].item_id, score) for score, row in sorted(made, key=lambda pair: (-pair[0], pair[1]))[:k]]


def bm25(items: list[SearchableItem], query: str, k1: float, b: float) -> dict[str, float]:
    """By the formula (Robertson and Zaragoza, 2009), with Lucene's idf."""
    texts = {item.item_id: re.findall(r"\w+", item.text.lower()) for item in items}
    mean = sum(map(len, texts.values())) / len(texts)
    scores = dict.fromkeys(texts, 0.0)
    for word in {*query.split()}:
        n_with = sum(word in words for words in texts.values())
        idf = math.log(1 + (len(texts) - n_with + 0.5) / (n_with + 0.5))
        for item_id, words in texts.items():
            often = Counter(words)[word]
            scores[item_id] += idf * often * (k1 + 1) / (often + k1 * (1 - b + b * len(words) / mean))
    return {item_id: score for item_id, score in scores.items() if score > 0}


def same(given: list[tuple[str, float]], wanted: list[tuple[str, float]], atol: float = 2e-6) -> None:
    np.testing.assert_allclose([score for _, score in given], [score for _, score in wanted], rtol=1e-5, atol=atol)
    assert [item_id for item_id, _ in given] == [item_id for item_id, _ in wanted]


def test_vectors_are_compared_as_numpy_does_under_every_filter_and_after_updates(index: Path) -> None:
    items, made = corpus(900), searcher()
    made.index(items, index)
    for where, passes in FILTERS:
        for query in QUERIES:
            for k in (1, 10, 1000):
                same(found(made, query, k, where), exact(items, query, passes, k))
    made.delete([f"d{row}" for row in range(0, 900, 3)], auto_compact=False)
    made.add(corpus(100, 900), auto_compact=False)
    left = [item for item in items if int(item.item_id[1:]) % 3] + corpus(100, 900)
    for compacted in (False, True):
        if compacted:
            made.compact()
        for where, passes in FILTERS:
            same(found(made, QUERIES[0], 50, where), exact(left, QUERIES[0], passes, 50))


def test_words_are_scored_by_the_formula(index: Path) -> None:
    items, made = corpus(300), searcher("bm25", k1=0.9, b=0.4)
    made.index(items, index)
    for query in (*QUERIES, "Fox! (whale)"):
        wanted = bm25(items, re.sub(r"\W+", " ", query).strip().lower(), 0.9, 0.4)
        ranked = sorted(wanted.items(), key=lambda pair: (-round(pair[1], 5), int(pair[0][1:])))
        given = found(made, query, 1000)
        same(given, ranked, atol=1e-4)
        for where, passes in FILTERS[1:]:
            same(found(made, query, 7, where), [pair for pair in given if passes(int(pair[0][1:]))][:7])
    with pytest.warns(RetrievalWarning, match="found nothing"):
        assert found(made, "nothing-of-it") == []


def test_an_approximate_index_finds_most_and_k_wherever_k_match(index: Path) -> None:
    index_type = "hnsw"
    items = corpus(1500)
    made = searcher(index_type=index_type, nlist=40, nprobe=8, ef_search=64)
    made.index(items, index)
    shares = []
    for query in [f"{WORDS[n]} {WORDS[(5 * n + 2) % 16]}" for n in range(16)]:
        wanted, given = exact(items, query, lambda n: True, 10), found(made, query, 10)
        shares.append(np.mean([score >= wanted[-1][1] - 1e-5 for _, score in given]))
    assert np.mean(shares) >= 0.95
    for where, passes in FILTERS:
        given = found(made, QUERIES[0], 140, where)
        assert len({item_id for item_id, _ in given}) == 140
        assert all(passes(int(item_id[1:])) for item_id, _ in given)


# servers elsewhere


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("http://me:s3cret@127.0.0.1:1/db", ServerError, r"\*\*\*@127.*check that the server runs, the URL"),
        ("file.db", ConfigurationError, "not the URL of a Milvus server"),
        ("http://me:s3cret/word@host:1", ConfigurationError, "not the URL of a Milvus server"),
        ("env:NOT_SET_ANYWHERE", SourceError, "NOT_SET_ANYWHERE"),
    ],
)
def test_a_server_that_is_not_there_is_told_without_its_password_and_once(
    url: str, error: type[Exception], message: str, index: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = searcher(url=url, timeout=1)
    with caplog.at_level(logging.INFO), pytest.raises(error, match=message) as caught:
        made.index(corpus(3), index)
    assert "s3cret" not in f"{caught.value}{made.config}{made.retrievers!r}"
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_a_token_comes_from_the_environment_and_a_server_that_goes_away_is_told(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = TcpServer(tmp_path / "closed", token="root:right-word")
    monkeypatch.setenv("MILVUS_TEST_TOKEN", "root:right-word")
    made = searcher(url=server.url, token="env:MILVUS_TEST_TOKEN", timeout=2)
    made.index(corpus(20), index)
    assert found(made)
    monkeypatch.setenv("MILVUS_TEST_TOKEN", "root:wr0ng-word")
    with pytest.raises(ServerError, match="the token") as caught:
        searcher(url=server.url, token="env:MILVUS_TEST_TOKEN", timeout=2).open(index)
    assert "wr0ng" not in str(caught.value)
    server.close()
    with pytest.raises(ServerError, match="check that the server runs"):
        found(made)


# Milvus Lite


def test_milvus_lite_is_private_and_of_one_process(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = searcher(url=None)
    made.index(corpus(40), index)
    wanted = found(made)
    assert stat.S_IMODE((index / ".milvus").stat().st_mode) == 0o700
    script = (
        "import sys; from hashed_words import HashedWords; from nlp_retrieval import MilvusRetriever, Searcher\n"
        "Searcher([MilvusRetriever(HashedWords(24))]).open(sys.argv[1])"
    )
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    done = subprocess.run([sys.executable, "-c", script, str(index)], capture_output=True, text=True, check=False)
    assert "another one may use it" in done.stderr.splitlines()[-1]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
    with pytest.raises(UntrustedError, match=TRUSTED):
        searcher(url=None).open(index)
    monkeypatch.setenv(TRUSTED, str(index / ".milvus"))
    assert found(searcher(url=None).open(index)) == wanted
