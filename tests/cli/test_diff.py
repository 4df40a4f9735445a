"""``nlp-retrieval diff``: two rankings of a query side by side, at the command line."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from benchmarks.small_benchmark import collection, configuration
from evaluation.test_rankings import Hit, lists_of
from rich.console import Console

from nlp_retrieval.benchmarks import read_run_folder
from nlp_retrieval.evaluation.ranking_difference import QueryDifference, changed_queries, difference
from nlp_retrieval.evaluation.ranking_files import read_lists
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.terminal import difference_view

from .commands import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("diff")
    done = run("benchmark", str(configuration(made, collection(made / "data"))), folder=made)
    assert done.returncode == 0, done.stderr
    return made


def one_line(text: str) -> str:
    return " ".join(text.split())


def printed(found: QueryDifference) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    Console(file=file, width=80, highlight=False).print(difference_view(found))
    file.flush()
    return file.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined, no-any-return]


def small() -> RunLists:
    one: list[Hit] = [
        ("a", 3.0, {"bm25.score": 9.0, "bm25.rank": 1.0}),
        ("b", 2.0, {"bm25.score": 8.0, "bm25.rank": 2.0}),
        ("c", 1.0, {"bm25.score": 7.0, "bm25.rank": 3.0}),
    ]
    other: list[Hit] = [
        ("d", 3.0, {"bm25.score": 3.0, "bm25.rank": 9.0, "overlap.score": 0.9}),
        ("a", 2.0, {"bm25.score": 9.0, "bm25.rank": 1.0, "overlap.score": 0.5}),
        ("b", 1.0, {"bm25.score": 8.0, "bm25.rank": 2.0, "overlap.score": 0.1}),
    ]
    return lists_of({"one": [one], "other": [other]}, {"q0": {"d": 1, "gold alone": 1}}, 1)


def test_what_entered_left_and_moved_is_said_in_words_at_any_width() -> None:
    text = printed(difference(small(), "one", "other", "q0", 2))
    assert max(map(len, text.splitlines())) <= 80
    said = one_line(text)
    assert "q0: what is q0?" in said
    assert "1 | aa | d [gold] entered" in said
    assert "2 | bb left, rank 3 there | aa down 1, from 1" in said
    assert "| recall@2 0.000 | recall@2 0.500" in said
    assert "Gold that neither has in its first 2: Its title (gold alone)" in said
    assert "d [gold]: not in the list to rank 1" in said
    assert "overlap.score: not in the list -> 0.9, rank 1" in said
    assert "aa (a): rank 1 to rank 2 overlap.score: no such signal -> 0.5, rank 2" in said
    assert "bb (b): rank 2 to rank 3 (beyond 2) overlap.score: no such signal -> 0.1, rank 3" in said
    assert "bm25.score: 9, rank 1" not in said, "a signal that ranks a hit as before did not move"


def test_without_a_query_those_that_change_most_are_listed(folder: Path) -> None:
    pair = (f"{folder / 'run'}:clauses", f"{folder / 'run'}:bm25")
    done = run("diff", *pair, "--k", "3")
    assert done.returncode == 0, done.stderr
    assert "the 20 of 20 queries that change most" in one_line(done.stdout)
    wanted = changed_queries(read_lists(folder / "run"), "clauses", "bm25", 3, "ndcg")
    assert [query for query in done.stdout.split() if re.fullmatch(r"q\d+", query)] == [row.query_id for row in wanted]
    main = read_run_folder(folder / "run").report.main_measure
    assert one_line(run("diff", *pair).stdout).startswith(f"{main} from clauses to bm25: ")


def test_queries_that_are_not_listed_are_counted_by_what_they_lack(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / f"{name}.trec").write_text("".join(f"q{number} Q0 d1 1 2.0 {name}\n" for number in range(4)))
    (tmp_path / "qrels.txt").write_text("q0 0 d1 1\nq1 0 d1 0\n")
    done = run("diff", "one.trec", "other.trec", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note: 1 query without a relevant document: not listed; name one with --query\n" in done.stderr
    assert "note: 2 queries without judgements: left out\n" in done.stderr
