"""Targets that read other people's data: the loaders, TREC files, filters, texts, and what language models answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
from hashed_words import InMemory

from nlp_retrieval.benchmarks.cost import read_prices
from nlp_retrieval.core.components.component import BaseQueryLoader, canonical_json
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.filters import Combination, Condition, Filter, parse_filter
from nlp_retrieval.core.index.masks import mask_of
from nlp_retrieval.encoders.endpoint import read_embeddings
from nlp_retrieval.errors import ConfigurationError, QueryError, SourceError
from nlp_retrieval.evaluation.trec import read_run, write_qrels, write_run
from nlp_retrieval.lm.answering import read_answer, shown_passage
from nlp_retrieval.lm.programs import read_program
from nlp_retrieval.lm.reading import read_object, read_passage, read_phrases, unwrapped
from nlp_retrieval.loaders.arrow import ParquetLoader
from nlp_retrieval.loaders.chunking import ChunkingLoader
from nlp_retrieval.loaders.datasets import BeirLoader, HotpotqaLoader, HoverLoader
from nlp_retrieval.loaders.files import read_json_list, read_lines
from nlp_retrieval.loaders.judgements import read_judgements
from nlp_retrieval.loaders.tables import CsvLoader, JsonlLoader
from nlp_retrieval.loaders.topics import TopicsLoader
from nlp_retrieval.processors.entity_phrases import EntityPhrases
from nlp_retrieval.processors.rules import ClauseSplit
from nlp_retrieval.rerankers.endpoint import read_scores
from nlp_retrieval.rerankers.listwise import read_permutation
from nlp_retrieval.text.mentions import mentions_by_rules
from nlp_retrieval.text.surfaces import first_mention, spans_of, surface_of, words_of
from nlp_retrieval.text.titles import normalize_title

from .inputs import a_file, a_folder, as_text, item_of, parts

_PASSAGES = [shown_passage(item_of(f"p{number}", "A fox runs. It sleeps. Trees grow."), 100) for number in range(3)]


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


def hover(data: bytes) -> bool:
    """A release file of HoVer."""
    return _ask(HoverLoader(a_file("hover.json", data)))


def hotpotqa(data: bytes) -> bool:
    """A release file of HotpotQA."""
    path = a_file("hotpot.json", data)
    loaders = HotpotqaLoader(path), HotpotqaLoader(path, sentence_facts=True)
    return all([*map(_stream, loaders), *map(_ask, loaders)])


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


def qrels(data: bytes) -> bool:
    """Judgements by each suffix; what is read in any form is read again as TREC qrels."""
    judged = []
    for name in ("a.csv", "a.tsv", "a.jsonl"):
        try:
            judged.append(read_judgements(a_file(name, data)))
        except SourceError:
            continue
        write_qrels(a_file("b.qrels", b""), judged[-1])
        assert read_judgements(a_file("b.qrels")) == judged[-1]
    return bool(judged)


def csv(data: bytes) -> bool:
    """A corpus as CSV, by names, by position, and without quotation marks."""
    path = a_file("items.csv", data)
    named = _stream(CsvLoader(path, id_field=None, number_fields=["year"], encoding="utf-16" if _is_utf16(data) else "utf-8"))
    return any([named, _stream(CsvLoader(path, columns=["id", "content", "year"], delimiter=","))])


def tsv(data: bytes) -> bool:
    """A corpus of MS MARCO's form, and one with quotation marks: a cell without them is the line's own text."""
    path = a_file("items.tsv", data)
    quoted = _stream(CsvLoader(path, columns=["id", "content"], delimiter="\t"))
    loader = CsvLoader(path, columns=["id", "content"], delimiter="\t", quote=None)
    try:
        items = loader.load()
    except SourceError:
        return quoted
    if not data.startswith(b"\x1f\x8b"):
        text = data.decode("utf-8-sig")
        assert all(f"{item.item_id}\t{item.content}" in text for item in items)
    return True


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


_ROWS: list[dict[str, Any]] = [
    {"year": 2015, "score": 0.5, "country": "Japan", "tags": ["a", "b"], "open": True},
    {"year": -(2**53), "score": -0.0, "country": "", "tags": [], "open": False},
    {"year": 2**53, "score": 1e308, "country": "\U0001f600", "tags": ["and"], "open": True},
    {"year": 0, "score": 2.0, "country": "japan"},
    {},
]
_TYPES = {"year": ("int", pa.int64()), "score": ("float", pa.float64()), "country": ("str", pa.string())}
_TYPES |= {"tags": ("strings", pa.list_(pa.string())), "open": ("bool", pa.bool_())}
_COLUMNS = {key: (kind, [(kind, pa.array([row.get(key) for row in _ROWS], of))]) for key, (kind, of) in _TYPES.items()}


def filters(data: bytes) -> bool:
    """A filter: the columns give what the values themselves give."""
    try:
        wanted = parse_filter(json.loads(as_text(data)))
    except (QueryError, ValueError, RecursionError):
        return False
    expected = [_holds(wanted, row) for row in _ROWS]
    try:
        mask = mask_of(wanted, {key: kind for key, (kind, _) in _COLUMNS.items()}, lambda key: _COLUMNS[key][1])
    except QueryError:
        return False
    assert mask.tolist() == expected
    return True


def titles(data: bytes) -> bool:
    """A title: normalising it twice is normalising it once."""
    once = normalize_title(as_text(data))
    assert normalize_title(once) == once
    return True


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


def embeddings(data: bytes) -> bool:
    """What a server of vectors answered: one finite vector for each text, or a fault that is told."""
    taken = False
    for n_texts in (1, 2):
        try:
            answer = read_embeddings(data, n_texts)
        except ValueError:
            continue
        taken = True
        assert len(answer.vectors) == n_texts
        assert np.isfinite(answer.vectors).all()
        assert answer.tokens >= 0
    return taken


def rerankings(data: bytes) -> bool:
    """What a server of rerankings answered: one finite score for each document, or a fault that is told."""
    taken = False
    for n_texts in (1, 2):
        try:
            answer = read_scores(data, ["text"] * n_texts)
        except ValueError:
            continue
        taken = True
        assert len(answer.scores) == n_texts
        assert np.isfinite(answer.scores).all()
        assert answer.tokens >= 0
    return taken


def programs(data: bytes) -> bool:
    """A compiled program."""
    path = a_file("program.json", data)
    try:
        read_program(path)
    except (SourceError, ConfigurationError):
        return False
    return True


def cited_answer(data: bytes) -> bool:
    """An answer of a model: one line of 60 words at most, which cites what it was shown."""
    text = as_text(data)
    used = False
    for fields in (read_object(text), {"answer": text, "citations": text}):
        answer = read_answer(fields, _PASSAGES)
        if answer is None:
            continue
        used = True
        assert len(answer.text.split()) <= 60
        assert "\n" not in answer.text + answer.reasoning
        (answer.text + answer.reasoning).encode()
        assert set(answer.passages) <= {passage.item.item_id for passage in _PASSAGES}
    return used


def prices(data: bytes) -> bool:
    """A table of prices; what is read reads as itself again."""
    try:
        table = read_prices(_json_or_none(data), "prices")
    except ConfigurationError:
        return False
    assert read_prices(table.config, "prices") == table
    return True


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


def _holds(wanted: Filter, row: dict[str, Any]) -> bool:
    if isinstance(wanted, Condition):
        return wanted.holds(row.get(wanted.key))
    assert isinstance(wanted, Combination)
    held = [_holds(part, row) for part in wanted.parts]
    return not held[0] if wanted.operator == "not" else all(held) if wanted.operator == "and" else any(held)


def _json_or_none(data: bytes) -> Any:
    try:
        return json.loads(as_text(data))
    except (ValueError, RecursionError):
        return None


FROM_OTHERS = [
    lines,
    jsonl,
    beir,
    hover,
    hotpotqa,
    json_list,
    trec_run,
    trec_qrels,
    qrels,
    csv,
    tsv,
    parquet,
    topics,
    filters,
    titles,
    texts,
]
FROM_MODELS = [answers, embeddings, rerankings, programs, cited_answer, prices]
