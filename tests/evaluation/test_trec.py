"""TREC files keep ids and order, for us and for other tools, and are whole or not there."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nlp_retrieval.core.files.records import decode_id
from nlp_retrieval.errors import EngineError, QueryError, SourceError
from nlp_retrieval.evaluation.trec import read_run, write_qrels, write_run
from nlp_retrieval.loaders.judgements import read_judgements

IDS = st.text(min_size=1, max_size=6) | st.text(alphabet="%:20 a\u00a0\n\ufeff\ud800", min_size=1, max_size=6)
SCORES = st.floats(-1e30, 1e30) | st.sampled_from([0.0, -0.0, 1.0, 1.00000001, 1e-45, 20.0, 20.00000001])


def columns(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text("utf-8").splitlines()]


def test_a_run_has_the_six_columns_of_trec(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "bm25.trec", ["q1", "q2", "q3"], [[("d2", 3.5), ("d1", 1.25)], [], [("d1", 0.1)]], "my run")
    assert (tmp_path / "a" / "bm25.trec").read_bytes() == (
        b"q1 Q0 d2 1 3.5 my_run\nq1 Q0 d1 2 1.25 my_run\nq3 Q0 d1 1 0.1 my_run\n"
    )


@settings(deadline=None)
@given(st.lists(SCORES, max_size=12))
def test_scores_are_written_strictly_decreasing_in_32_and_64_bits(
    tmp_path_factory: pytest.TempPathFactory, scores: list[float]
) -> None:
    path = tmp_path_factory.mktemp("run") / "run.trec"
    hits = [(f"d{place:02}", score) for place, score in enumerate(sorted(scores, reverse=True))]
    write_run(path, ["q"], [hits])
    written = [float(line[4]) for line in columns(path)]
    single = np.array(written).astype(np.float32)
    assert (np.diff(written) < 0).all()
    assert (single[1:] < single[:-1]).all()
    assert [item_id for item_id, _ in read_run(path).get("q", [])] == [item_id for item_id, _ in hits]


@settings(deadline=None)
@given(st.lists(IDS, unique=True, min_size=1, max_size=5))
def test_every_id_comes_back(tmp_path_factory: pytest.TempPathFactory, ids: list[str]) -> None:
    folder = tmp_path_factory.mktemp("ids")
    hits = [(item_id, float(-place)) for place, item_id in enumerate(ids)]
    write_run(folder / "run.trec", ids, [hits] * len(ids), "tag")
    assert read_run(folder / "run.trec") == dict.fromkeys(ids, hits)
    assert all(len(line) == 6 for line in columns(folder / "run.trec"))
    grades = {item_id: place - 1 for place, item_id in enumerate(ids)}
    write_qrels(folder / "qrels.gz", dict.fromkeys(ids, grades))
    assert read_judgements(folder / "qrels.gz") == dict.fromkeys(ids, grades)


def test_runs_are_read_in_the_order_of_trec_eval(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q Q0 a 1 20.0 t\nq\tQ0\tb\t9\t20.00000001\tt\r\n\nq Q0 c 3 21 t\nother Q0 a 1 -1e-3 t\nq Q0 B 4 20 t\n")
    assert read_run(path) == {
        "q": [("c", 21.0), ("b", 20.00000001), ("a", 20.0), ("B", 20.0)],
        "other": [("a", -0.001)],
    }


ODD = ["a\u00a0b", "a!b", "%:x", "%:%25:x", "%a", "Pel\u00e9", "Pelz", "\U0001f98a", "\ufffd", "a\u2003b", "A", "aa"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ids=st.lists(st.sampled_from(ODD) | st.text("%:a\u00a0\u3000\U0001f98a", min_size=3, max_size=5), unique=True, min_size=2)
)
def test_ties_are_broken_as_trec_eval_breaks_them_whatever_the_ids_hold(tmp_path: Path, ids: list[str]) -> None:
    ids = [one for one in ids if one != "%:"]
    assume(len({decode_id(one) for one in ids}) == len(ids))
    path = tmp_path / "run.trec"
    path.write_bytes("".join(f"q Q0 {one} 1 2.5 t\n" for one in ids).encode())
    ranks = {}
    for one in ids:
        judged = pytrec_eval.RelevanceEvaluator({"q": {one: 1}}, {"recip_rank"})
        ranks[one] = 1 / judged.evaluate({"q": dict.fromkeys(ids, 2.5)})["q"]["recip_rank"]
    assert [item_id for item_id, _ in read_run(path)["q"]] == [decode_id(one) for one in sorted(ids, key=ranks.__getitem__)]


@pytest.mark.parametrize("name", ["run.trec.gz", "run.trec"])
def test_gzip_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"\xef\xbb\xbfq 0 d1 2\nq 0 d2 -1\n"))
    assert read_judgements(tmp_path / name) == {"q": {"d1": 2, "d2": -1}}


class TestRefusals:
    @pytest.mark.parametrize(
        ("query_ids", "lists", "error", "message"),
        [
            (["q"], [], QueryError, "1 query ids for 0 lists; give an empty list where nothing was found"),
            (["q", "q"], [[], []], QueryError, "query id 'q' is given twice; a run holds one list per query"),
            (["q"], [[("", 1.0)]], QueryError, "an id is empty; a TREC file cannot hold it"),
            (["q"], [[("d", 2.0), ("d", 1.0)]], EngineError, "the list of query 'q' holds item 'd' twice"),
            (["q"], [[("c", 4.0), ("d", 1.0), ("e", 2.0)]], EngineError, "best first: rank 2 has score 1.0, rank 3 has 2.0"),
            (["q"], [[("c", 1.0), ("d", float("nan"))]], EngineError, "query 'q' has the score nan at rank 2; trec_eval"),
            (["q"], [[("d", 1e300)]], EngineError, "has the score 1e+300 at rank 1"),
            (["q"], [[(item_id, -3.4028234663852886e38) for item_id in "cd"]], EngineError, "ties at -3.4028"),
        ],
    )
    def test_a_run_that_would_be_corrupt_leaves_the_old_file(
        self, tmp_path: Path, query_ids: list[str], lists: list[list[tuple[str, float]]], error: type[Exception], message: str
    ) -> None:
        path = tmp_path / "run.trec"
        write_run(path, ["old"], [[("d", 1.0)]])
        before = path.read_bytes()
        with pytest.raises(error, match=re.escape(message)):
            write_run(path, query_ids, lists)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"q Q0 d 1 1.0 t\nq Q0 d2 1 1.0\n", "run, line 2: 5 columns, where a line is 'query Q0 item rank score tag'"),
            (b"q Q0 d 1 high t\n", "run, line 1: the score is 'high'; it must be a finite number"),
            (b"q Q0 d 1 2 t\n\nq Q0 d 2 1 t\n", "run, line 3: item 'd' of query 'q' is already on an earlier line"),
            (b"q Q0 \xff 1 1.0 t\n", "run, line 1: not UTF-8"),
            (gzip.compress(b"q Q0 d 1 1.0 t\n", mtime=0)[:-6], "run, after line 0: the gzip data is cut off or damaged"),
            (gzip.compress(b"q", mtime=0)[:10] + b"\xff" * 9, "run, after line 0: the gzip data is cut off or damaged"),
            (b"\x1f\x8bnonsense", "run, after line 0: the gzip data is cut off or damaged"),
        ],
    )
    def test_a_run_that_is_damaged(self, tmp_path: Path, content: bytes, message: str) -> None:
        (tmp_path / "run").write_bytes(content)
        with pytest.raises(SourceError, match=re.escape(message)):
            read_run(tmp_path / "run")
