"""Targets that read other people's data: the loaders, TREC files, filters, texts, and what language models answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hashed_words import InMemory

from nlp_retrieval.core.components.component import BaseQueryLoader, canonical_json
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.errors import SourceError
from nlp_retrieval.evaluation.trec import read_run, write_qrels, write_run
from nlp_retrieval.lm.reading import read_passage, read_phrases, unwrapped
from nlp_retrieval.loaders.arrow import ParquetLoader
from nlp_retrieval.loaders.chunking import ChunkingLoader
from nlp_retrieval.loaders.datasets import BeirLoader
from nlp_retrieval.loaders.files import read_json_list, read_lines
from nlp_retrieval.loaders.judgements import read_judgements
from nlp_retrieval.loaders.tables import CsvLoader, JsonlLoader
from nlp_retrieval.loaders.topics import TopicsLoader
from nlp_retrieval.processors.entity_phrases import EntityPhrases
from nlp_retrieval.processors.rules import ClauseSplit
from nlp_retrieval.rerankers.listwise import read_permutation
from nlp_retrieval.text.mentions import mentions_by_rules
from nlp_retrieval.text.surfaces import first_mention, spans_of, surface_of, words_of

from .inputs import a_file, a_folder, as_text, parts


def lines(data: bytes) -> bool:
    """Lines of text, plain or gzip."""
    try:
        found = [line for _, line in read_lines(a_file("lines", data))]
    except SourceError:
        return False
    assert not any("\n" in line for line in found)
    return True


def jsonl(data: bytes) -> bool:
    """A corpus of JSON lines."""
    return _stream(JsonlLoader(a_file("items.jsonl", data)))


def beir(data: bytes) -> bool:
    """A folder in BEIR's layout: corpus, queries and judgements."""
    corpus, queries, qrels = parts(data, 3)
    folder = a_folder("beir", {"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/test.tsv": qrels})
    return all([_stream(BeirLoader(folder)), _ask(BeirLoader(folder))])


def json_list(data: bytes) -> bool:
    """A streamed list: the same values as Python's own parser finds, or an error."""
    try:
        found = [value for _, value in read_json_list(a_file("list.json", data))]
    except SourceError:
        return False
    if not data.startswith(b"\x1f\x8b") and b"\\ud" not in data.lower():  # half of a surrogate pair becomes a question mark
        assert found == json.loads(data.decode("utf-8-sig"))
    return True


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
    named = _stream(CsvLoader(path, id_field=None, number_fields=["year"], encoding="utf-16" if _is_utf16(data) else "utf-8"))
    return any([named, _stream(CsvLoader(path, columns=["id", "content", "year"], delimiter=","))])


def parquet(data: bytes) -> bool:
    """A corpus as Parquet, with all its columns and with some."""
    path = a_file("items.parquet", data)
    loaders = ParquetLoader(path), ParquetLoader(path, None, ["body", "content"], None, ["doc", "when"])
    taken = [_stream(loader) for loader in loaders]
    return any(taken)


def topics(data: bytes) -> bool:
    """Queries in every form, and judgements of them."""
    asked, judged = parts(data, 2)
    qrels = a_file("topics.qrels", judged)
    taken = [_ask(TopicsLoader(a_file(f"topics.{form}", asked), qrels)) for form in ("txt", "csv", "tsv", "jsonl")]
    return any(taken)


def texts(data: bytes) -> bool:
    """A passage: its words, names and clauses, and the passages that it is cut into."""
    text = as_text(data)
    mentions_by_rules(text)
    spans = spans_of(text)
    assert all(0 <= begin < end <= len(text) for begin, end in spans)
    words_of(text)
    surface = surface_of(text[:40])
    if surface is not None:
        first_mention(text, [surface])
    for processor in (ClauseSplit(), EntityPhrases()):
        assert len(processor.process([text])) == 1
    whole = text.encode("utf-8", "replace").decode()  # no item holds half of a surrogate pair
    for unit in ("words", "characters"):
        for passage in ChunkingLoader(InMemory([whole]), 7, 3, unit).stream():
            begin, end = passage.metadata["start"], passage.metadata["end"]
            assert whole[begin:end] == passage.content
    return True


def answers(data: bytes) -> bool:
    """What a language model wrote: usable phrases, or none."""
    used = False
    for answer in (as_text(data), _json_or_none(data)):
        phrases = read_phrases(answer, "a claim", 3, 8) or []
        assert len(phrases) <= 3
        passage = read_passage(unwrapped(answer), "a query", 8)
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


def _ask(loader: BaseQueryLoader) -> bool:
    try:
        asked = [query.query_id for query in loader.queries()]
    except SourceError:
        return False
    assert len(set(asked)) == len(asked)
    try:
        assert [gold.query_id for gold in loader.gold()] == asked
    except SourceError:
        return False
    return True


def _is_utf16(data: bytes) -> bool:
    return data.startswith((b"\xff\xfe", b"\xfe\xff"))


def _json_or_none(data: bytes) -> Any:
    try:
        return json.loads(as_text(data))
    except (ValueError, RecursionError):
        return None


FROM_OTHERS = [
    lines,
    jsonl,
    beir,
    json_list,
    trec_run,
    trec_qrels,
    csv,
    parquet,
    topics,
    texts,
]
FROM_MODELS = [answers]
