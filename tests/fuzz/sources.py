"""Targets that read other people's data: the loaders, TREC files, filters, texts, and what language models answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.errors import SourceError
from nlp_retrieval.evaluation.trec import read_run, write_qrels, write_run
from nlp_retrieval.lm.reading import read_passage, read_phrases
from nlp_retrieval.loaders.arrow import ParquetLoader
from nlp_retrieval.loaders.judgements import read_judgements
from nlp_retrieval.loaders.tables import CsvLoader, JsonlLoader
from nlp_retrieval.rerankers.listwise import read_permutation

from .inputs import a_file, as_text


def jsonl(data: bytes) -> bool:
    """A corpus of JSON lines."""
    return _stream(JsonlLoader(a_file("items.jsonl", data)))


def trec_run(data: bytes) -> bool:
    """A run file; what is read can be written, and is read again in the same order."""
    try:
        run = read_run(a_file("a.run", data))
    except SourceError:
        return False
    assert all(np.isfinite(score) for hits in run.values() for _, score in hits)
    lists = [[(item_id, float(-rank)) for rank, (item_id, _) in enumerate(hits)] for hits in run.values()]
    write_run(a_file("b.run", b""), list(run), lists)
    again = read_run(a_file("b.run"))
    assert {query: [item for item, _ in hits] for query, hits in again.items()} == {
        query: [item for item, _ in hits] for query, hits in run.items()
    }
    return True


def trec_qrels(data: bytes) -> bool:
    """Judgements; what is read can be written, and is read again as it was."""
    try:
        judged = read_judgements(a_file("a.qrels", data))
    except SourceError:
        return False
    write_qrels(a_file("b.qrels", b""), judged)
    assert read_judgements(a_file("b.qrels")) == judged
    return True


def csv(data: bytes) -> bool:
    """A corpus as CSV, by names, by position, and without quotation marks."""
    path = a_file("items.csv", data)
    named = _stream(CsvLoader(path, id_field=None, number_fields=["year"]))
    return any([named, _stream(CsvLoader(path, columns=["id", "content", "year"], delimiter=","))])


def parquet(data: bytes) -> bool:
    """A corpus as Parquet, with all its columns and with some."""
    path = a_file("items.parquet", data)
    loaders = ParquetLoader(path), ParquetLoader(path, None, ["body", "content"], None, ["doc", "when"])
    taken = [_stream(loader) for loader in loaders]
    return any(taken)


def answers(data: bytes) -> bool:
    """What a language model wrote: usable phrases, or none."""
    used = False
    for answer in (as_text(data), _json_or_none(data)):
        phrases = read_phrases(answer, "a claim", 3, 8) or []
        assert len(phrases) <= 3
        passage = read_passage(answer, "a query", 8)
        for text in [*phrases, *([] if passage is None else [passage])]:
            used = True
            assert 0 < len(text.split()) <= 8
            text.encode()
        order = read_permutation(answer, 3)
        assert order is None or sorted(order.order) == [0, 1, 2]
    return used


def _stream(loader: BaseLoader) -> bool:
    try:
        for item in loader.stream():
            item.text.encode()
            assert item.item_id
            canonical_json(item.metadata)
    except SourceError:
        return False
    return True


def _json_or_none(data: bytes) -> Any:
    try:
        return json.loads(as_text(data))
    except (ValueError, RecursionError):
        return None


FROM_OTHERS = [jsonl, trec_run, trec_qrels, csv, parquet, answers]
