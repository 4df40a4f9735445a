"""Extraction: ``python -m bench.knowledge DATA`` writes ``bench/KNOWLEDGE.md``.

DATA holds ``musique/corpus.jsonl`` and ``musique/openie.jsonl``. No language model is asked: a server of our own answers
after 1.5 seconds, so what is measured is everything around it.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from bench.knowledge.server import slow_server
from bench.writing import page, table
from nlp_retrieval import JsonlLoader, LanguageModel, SearchableItem
from nlp_retrieval.lm import ModelEndpoint
from nlp_retrieval.systems.hipporag.extraction import KnowledgeExtractor, extract_knowledge
from nlp_retrieval.systems.hipporag.knowledge import Extraction, ExtractionRun, PassageRecord, ReadKnowledge, passage_hash
from nlp_retrieval.systems.hipporag.sources import OpenIeFile
from nlp_retrieval.systems.hipporag.store import KnowledgeStore

_PAGE = Path(__file__).parent.parent / "KNOWLEDGE.md"
_SECONDS = 1.5
_GOAL = 167
_RUNS = ((1, 1, 40), (4, 1, 160), (8, 1, 320), (16, 1, 640), (4, 10, 640))
_BATCH = 100


def main(arguments: list[str]) -> int:
    """Measure, and write the page."""
    if len(arguments) != 1 or not (folder := Path(arguments[0]) / "musique").is_dir():
        print("usage: python -m bench.knowledge DATA   (DATA holds musique/)")
        return 2
    warnings.simplefilter("ignore")
    items = JsonlLoader(folder / "corpus.jsonl", id_field="_id", content_field="text").load()
    with tempfile.TemporaryDirectory() as work:
        runs = [_run(items[:size], Path(work) / str(size + per_call), at_once, per_call) for at_once, per_call, size in _RUNS]
        stored = _stored(items, OpenIeFile(folder / "openie.jsonl"), Path(work) / "published.db")
    heads = ("calls at once, passages a call", "passages", "seconds", "passages a minute", "most at once", "asked again")
    _PAGE.write_text(
        page(
            (Path(__file__).parent / "page.md").read_text("utf-8"),
            seconds=_SECONDS,
            goal=_GOAL,
            batch=_BATCH,
            runs=table(heads, {cells[0]: cells[1:] for cells in runs}),
            stored=table(("", "seconds", "passages a second"), stored),
            n_items=f"{len(items):,}",
        ),
        "utf-8",
    )
    return 0


def _run(items: list[SearchableItem], work: Path, at_once: int, per_call: int) -> list[str]:
    """Extract into a new store, and again; return a row of the table."""
    with slow_server(_SECONDS) as server, KnowledgeStore(str(work) + ".db", create=True) as store:
        endpoint = ModelEndpoint(calls_at_once=at_once)
        model = LanguageModel("openai/scripted", server.url, endpoint=endpoint, cache_dir=work, max_tokens=2048)
        done = extract_knowledge(items, store, KnowledgeExtractor(model, passages_per_call=per_call), commit_every=_BATCH)
        again = extract_knowledge(items, store, KnowledgeExtractor(model, passages_per_call=per_call))
        if not done.whole or done.extracted != len(items):
            raise SystemExit(f"not all was extracted: {done}")
        figures = (f"{len(items):,}", f"{done.seconds:.1f}", f"{done.per_minute:,.0f}", str(server.busiest))
        return [f"{at_once}, {per_call}", *figures, str(again.calls.calls)]


def _stored(items: list[SearchableItem], published: OpenIeFile, path: Path) -> dict[str, list[str]]:
    """Write and read what was published of each passage; return the rows of a table."""
    known = [(item, knowledge) for item, knowledge in zip(items, published.of(items), strict=True) if knowledge is not None]
    extraction = Extraction("published", "{}")
    with KnowledgeStore(str(path), create=True) as store:
        store.begin(extraction)

        def write() -> None:
            rest = iter(known)
            while batch := list(islice(rest, _BATCH)):
                records = [
                    PassageRecord(item.item_id, passage_hash(item.title, item.content), ReadKnowledge(knowledge), 1)
                    for item, knowledge in batch
                ]
                store.save(extraction, records, ExtractionRun("bench", len(known), len(known)))

        source = store.source()
        return {
            "written, in batches": _timed(write, len(known)),
            "written again": _timed(write, len(known)),
            "looked up": _timed(lambda: store.missing(extraction, items), len(items)),
            "read": _timed(lambda: source.of(items), len(items)),
        }


def _timed(work: Callable[[], object], number: int) -> list[str]:
    begin = time.perf_counter()
    work()
    took = time.perf_counter() - begin
    return [f"{took:.2f}", f"{number / took:,.0f}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
