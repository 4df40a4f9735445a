"""Export of a project's passages as a collection in BEIR's layout, with judged claims, for a benchmark of searchers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from nlp_retrieval.core import remove_output, write_output
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders import JsonObject, as_id, as_text, read_json_lines
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.text import located


def export_collection(sources: EvidenceIndex, folder: str | Path, judged: str | Path | None = None) -> tuple[int, int]:
    """Write the searchable passages of a project, and judged claims, into a folder; return the number of both."""
    target = Path(folder)
    keys = dict.fromkeys(source.key for source in sources.sources())  # a text with several URLs once, under the first
    corpus = [_row(_id(key, number), one) for key in keys for number, one in enumerate(sources.passages(key))]
    queries, gold = ([], []) if judged is None else _judged(sources, Path(judged))
    for name in ("qrels/test.tsv", "queries.jsonl"):  # first, so that no claims are judged by passages of another export
        remove_output(target / name)
    write_output(target / "corpus.jsonl", _lines(corpus))
    if judged is not None:
        table = "".join(f"{query}\t{item}\t1\n" for query, item in gold)
        write_output(target / "queries.jsonl", _lines(queries))
        write_output(target / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{table}".encode())
    return len(corpus), len(queries)


def _id(key: str, number: int) -> str:
    return f"{key}::{number}"


def _row(item_id: str, passage: EvidencePassage) -> dict[str, object]:
    about = {"url": passage.url, "quality": passage.quality, "fetch_date": passage.fetch_date}
    titled = {"title": passage.title} if passage.title else {}
    metadata = {key: value for key, value in about.items() if value}
    return {"_id": item_id, **titled, "text": passage.content, "metadata": metadata}


def _judged(sources: EvidenceIndex, path: Path) -> tuple[list[dict[str, object]], list[tuple[str, str]]]:
    """Return queries, and pairs of query and gold passage, each once and in the order of the file."""
    queries: dict[str, dict[str, object]] = {}
    gold: dict[tuple[str, str], None] = {}
    for where, row in read_json_lines(path):
        claim = as_text(where, "claim", row.get("claim"))
        if not claim.strip():
            raise SourceError(f'{where}: "claim" is empty')
        if claim not in queries:
            metadata = {} if row.get("family") is None else {"family": as_id(where, "family", row["family"])}
            queries[claim] = {"_id": f"claim{len(queries) + 1}", "text": claim, "metadata": metadata}
        item_ids = _gold(sources, where, as_text(where, "url", row.get("url")), row)
        gold |= dict.fromkeys((str(queries[claim]["_id"]), item_id) for item_id in item_ids)
    if not queries:
        raise SourceError(f"{path}: it holds no claims; write one object per line, with claim, url and quote")
    return list(queries.values()), list(gold)


def _gold(sources: EvidenceIndex, where: str, url: str, row: JsonObject) -> Iterable[str]:
    source = sources.source(url)
    if source is None:
        raise SourceError(f"{where}: no text is stored under {url[:200]!r}; add it to the project, or remove the line")
    passages = sources.passages(source.key)
    if row.get("quote") is None:
        return [_id(source.key, number) for number in range(len(passages))]
    span = located(as_text(where, "quote", row["quote"]), sources.text(source.key), shortest=1)
    if span is None:
        raise SourceError(f"{where}: the text of {url[:200]!r} does not have this quote; copy it exactly")
    begin, end = span
    whole = [number for number, passage in enumerate(passages) if passage.start <= begin and end <= passage.end]
    parts = [number for number, passage in enumerate(passages) if passage.start < end and begin < passage.end]
    return [_id(source.key, number) for number in whole or parts]


def _lines(rows: Iterable[Mapping[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
