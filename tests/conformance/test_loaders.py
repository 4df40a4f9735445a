"""Every loader keeps every rule."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import datasets
import ir_datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hashed_words import InMemory

from nlp_retrieval import (
    BeirLoader,
    ChunkingLoader,
    CsvLoader,
    HotpotqaLoader,
    HoverLoader,
    HuggingFaceLoader,
    IrDatasetsLoader,
    JsonlLoader,
    ParquetLoader,
    TopicsLoader,
)
from nlp_retrieval.documents.loader import DocumentsLoader
from nlp_retrieval.loaders.database import DatabaseLoader
from nlp_retrieval.testing import LoaderRules, QueryLoaderRules

from .as_described import LoadsAlone

TEXTS = ["Köln liegt am Rhein. 東京 🦊", "", "a long one. " * 90, 'He said:\n"O\'Hara; \\ --"']


def write_lines(path: Path, rows: list[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


class TestJsonl(LoaderRules):
    component = JsonlLoader

    def prepare(self):
        rows = [{"id": n, "content": text, "title": "T", "year": 1900 + n, "tags": ["x"]} for n, text in enumerate(TEXTS)]
        write_lines(self.folder / "items.jsonl", rows)

    def make(self):
        return JsonlLoader(self.folder / "items.jsonl")


class TestBeir(LoaderRules, QueryLoaderRules):
    component = BeirLoader

    def prepare(self):
        rows = [{"_id": f"d{n}", "text": text, "title": "T", "metadata": {"n": n}} for n, text in enumerate(TEXTS)]
        write_lines(self.folder / "corpus.jsonl", rows)
        write_lines(self.folder / "queries.jsonl", [{"_id": f"q{n}", "text": f"東京 {n}?"} for n in range(3)])
        (self.folder / "qrels").mkdir()
        (self.folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td1\t1\nq2\td0\t2\n", "utf-8")

    def make(self):
        return BeirLoader(self.folder)


class TestHotpotqa(LoaderRules, QueryLoaderRules):
    component = HotpotqaLoader

    def prepare(self):
        facts = [["Ballard", 0], ["Köln", 0]]
        context = [["Köln", [TEXTS[0], " Much."]], ["Ballard", ["He wrote. ", "Novels."]], ["Empty", []]]
        row = {
            "question": "Who? 東京",
            "answer": "yes",
            "type": "bridge",
            "level": "hard",
            "supporting_facts": facts,
            "context": context,
        }
        (self.folder / "hotpot.json").write_text(json.dumps([{"_id": name, **row} for name in "ab"]), "utf-8")

    def make(self):
        return HotpotqaLoader(self.folder / "hotpot.json")


class TestHover(QueryLoaderRules):
    component = HoverLoader

    def prepare(self):
        facts = [["Eatza Pizza", 0], ["Köln", 0]]
        row = {"claim": "東京 is claimed", "supporting_facts": facts, "label": "SUPPORTED", "num_hops": 2, "hpqa_id": "h"}
        (self.folder / "hover.json").write_text(json.dumps([{"uid": name, **row} for name in "ab"]), "utf-8")

    def make(self):
        return HoverLoader(self.folder / "hover.json")


class TestDatabase(LoaderRules):
    component = DatabaseLoader

    def prepare(self):
        self._write("items.db", [(f"d{n}", text, n) for n, text in enumerate(TEXTS)])

    def make(self):
        return DatabaseLoader(f"sqlite:///{self.folder / 'items.db'}", table="docs")

    def _write(self, name, rows):
        with closing(sqlite3.connect(self.folder / name)) as connection:
            connection.execute("CREATE TABLE docs (id TEXT PRIMARY KEY, content TEXT NOT NULL, n INTEGER)")
            connection.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
            connection.commit()


class TestChunker(LoaderRules):
    component = ChunkingLoader

    def make(self):
        return ChunkingLoader(InMemory(TEXTS), size=40, overlap=8)


class _Tables(LoaderRules):
    """A table with the texts of :data:`TEXTS`."""

    suffix = ""

    def prepare(self):
        rows = [{"id": n, "content": text, "title": "T", "year": f"{1900 + n}"} for n, text in enumerate(TEXTS)]
        self.write(self.folder / f"items{self.suffix}", rows)

    def make(self):
        return self.component(self.folder / f"items{self.suffix}")


class TestCsv(_Tables):
    component = CsvLoader
    suffix = ".csv"

    def write(self, path, rows):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


class TestParquet(_Tables):
    component = ParquetLoader
    suffix = ".parquet"

    def write(self, path, rows):
        pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.soak
class TestHuggingFace(_Tables):
    component = HuggingFaceLoader

    def write(self, path, rows):
        datasets.Dataset.from_list(rows).save_to_disk(path)


class TestDocuments(LoaderRules):
    component = DocumentsLoader

    def prepare(self):
        (self.folder / "docs").mkdir()
        (self.folder / "docs" / "a.md").write_text("---\nyear: 2020\n---\n# Köln\n\nAm Rhein. 東京 🦊\n", "utf-8")
        (self.folder / "docs" / "b.html").write_text("<title>Krill</title><p>Krill live in cold water.</p>", "utf-8")
        (self.folder / "docs" / "c.txt").write_text("a long one. " * 90, "utf-8")

    def make(self):
        return DocumentsLoader(self.folder / "docs")


class TestTopics(QueryLoaderRules):
    component = TopicsLoader

    def prepare(self):
        (self.folder / "topics.xml").write_text(
            '<topics><topic number="1"><title>東京</title></topic><topic number="2"><title>b</title></topic></topics>', "utf-8"
        )
        (self.folder / "qrels.txt").write_text("1 0 d1 1\n2 0 d2 2\n", "utf-8")

    def make(self):
        return TopicsLoader(self.folder / "topics.xml", self.folder / "qrels.txt")


@pytest.mark.soak
class TestIrDatasets(LoaderRules, QueryLoaderRules):
    component = IrDatasetsLoader

    def prepare(self):
        (self.folder / "docs.tsv").write_text("d1\tKöln\nd2\t東京\n", "utf-8")
        (self.folder / "queries.tsv").write_text("q1\t東京?\n", "utf-8")
        (self.folder / "qrels.txt").write_text("q1 0 d2 1\n", "utf-8")
        name = f"conformance-{self.folder.name}"
        if name not in ir_datasets.registry:
            files = (str(self.folder / file) for file in ("docs.tsv", "queries.tsv", "qrels.txt"))
            ir_datasets.registry.register(name, ir_datasets.create_dataset(*files))

    def make(self):
        return IrDatasetsLoader(f"conformance-{self.folder.name}")


class TestLoaderWithLoadAlone(LoaderRules):
    component = LoadsAlone
