"""Files of public collections are read as a plain reader of their form reads them, or refused with a cure that works."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from bench import real_files
from bench.real_files import measure, page_of

FILES = {
    "topics/topics.robust.txt": b"<top>\n<num> Number: 051\n<title> owls &amp; <i>kites</i>\n<desc> Description:\nd\n</top>\n"
    b"<top lang='en'>\n<num> Number: 052\n<title> crows\n</top>\n",
    "topics/topics.web.xml": b"<?xml version='1.0'?><w><!-- c --><topic number='1' type='faceted'><query>owl \n nests</query>"
    b"<subtopic number='1'>a</subtopic></topic></w>",
    "topics/topics.cacm.txt": b"<DOC>\n<DOCNO> 1 </DOCNO>\n\nowls and\nkites\n</DOC>\n"
    b"<DOC>\n<DOCNO> 2 </DOCNO>\ncrows\n</DOC>\n",
    "topics/topics.beir.tsv.gz": gzip.compress(b'q1\t"Heroes" song\r\nq2\ta "b\t\r\nq3\tc" d\r\n'),
    "topics/topics.dl.txt": b"\xef\xbb\xbf7\towl, or kite?\n8\tcrow\n",
    "topics/topics.a.jsonl": b'{"qid": "0", "query": "owl"}\n{"qid": "1", "query": "kite", "answer": "x"}\n',
    "topics/topics.b.json": b'[{"question_id": "C1", "question": "owl?", "query": "owl"}]',
    "topics/topics.links.txt": b"<top>\n<num> Number: 321 </num>\n<docid>d1</docid>\n<url>http://host/a<url>\n</top>\n",
    "topics/topics.wide.txt": "1\towl\n".encode("utf-16"),
    "qrels/qrels.a.txt": b"51 0 d1 1\n51 0 d2 -2\n",
    "qrels/qrels.subtopics.txt": b"51 1 d1 0\n51 2 d1 1\n",
    "qrels/qrels.b.tsv": b'query-id\tcorpus-id\tscore\n"q\td1\t1\n',
    "qrels/qrels.c.txt": b"51\tQ0\td1\t1.0\t\n",
    "runs/a.run": b"q Q0 d1 1 2.5 t\nq Q0 d2 2 2.5 t\n",
    "runs/b.trec": b"q d1 1\nq d2 2\n",
    "runs/c.trec.xz": lzma.compress(b"q Q0 d1 1 2.5 t\n"),
    "runs/d.trec.bz2": bz2.compress(b"q Q0 d1 1 2.5 t\n"),
}
CURED = {
    "topics/topics.links.txt",
    "topics/topics.wide.txt",
    "runs/b.trec",
    "runs/c.trec.xz",
    "runs/d.trec.bz2",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return tmp_path


def test_every_file_is_read_equal_or_with_its_cure(folder: Path) -> None:
    outcomes = {outcome.file: outcome for outcome in measure(folder)}
    assert {name: outcome.result for name, outcome in outcomes.items()} == {
        name: "cured" if name in CURED else "equal" for name in FILES
    }
    assert outcomes["qrels/qrels.subtopics.txt"].notes == 1
    assert "| topics | 9 | 7 | 2 | 0 | 0 |" in page_of(list(outcomes.values()))


def test_a_file_that_is_read_otherwise_or_has_no_cure_is_counted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(real_files, "PAGE", tmp_path / "page.md")
    assert real_files.main([str(folder)]) == 0
    (folder / "qrels" / "qrels.broken.txt").write_text("1 0 d1\n1 0 d1 1\n")
    assert real_files.main([str(folder)]) == 1
    assert "| qrels | 5 | 4 | 0 | 1 | 0 |" in capsys.readouterr().out
    monkeypatch.setitem(real_files.REFERENCES, "qrels", lambda text: {"51": {"d1": 9}})
    assert {outcome.result for outcome in measure(folder) if outcome.kind == "qrels"} == {"differs", "refused"}
