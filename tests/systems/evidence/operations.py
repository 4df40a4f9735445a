"""Operations on a project of sources: adding, deleting and building."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from crash.index_operations import scratch_in
from crash.operation import Operation, State

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from systems.evidence.sources import SOURCES

_OLD, _NEW = SOURCES[:3], SOURCES[3:]
_ASKED = ["Who was the architect of the Long Bridge?", "repairs cost 40 million", "toll for cars", "beetles of winter"]
_STATISTICS = ("document_count", "source_count", "passage_count", "unique_domains", "total_queries", "average_relevance")


def _opened(world: Path) -> EvidenceIndex:
    return EvidenceIndex(world / "project", Searcher([Bm25Retriever(backend="numpy")]))


def _built(world: Path) -> None:
    """A project with sources, an alias, two versions of a page and a deleted one, of which some searches were made."""
    with _opened(world) as index:
        for source in _OLD:
            index.add_document(*source)
        index.add_document(_OLD[1][0], "https://mirror.example.com/ferries", "Mirror", "C", "2026-02-01")
        index.add_document("Ferries are quick now.", _OLD[1][1], "Ferries", "B", "2026-03-01")
        index.add_document("Nobody knows.", "https://gone.example.com/", "Gone", "D", "2026-01-01")
        index.delete("https://gone.example.com/")
        index.build_index()
        for question in _ASKED:
            index.search(question)


def _changed(world: Path) -> None:
    """The same, with changes of every kind that its index does not hold yet."""
    _built(world)
    with _opened(world) as index:
        for source in _NEW:
            index.add_document(*source)
        index.delete(_OLD[0][1])
        index.add_document(_OLD[2][0], _OLD[2][1], "Repairs of the bridge", "A", "2026-05-01")


def _add(world: Path) -> None:
    """Add one source after another, and say outside the project how many of them are added."""
    with _opened(world) as index:
        for count, source in enumerate(_NEW, 1):
            index.add_document(*source)
            (world / "returned").write_text(str(count))


def _build(world: Path) -> None:
    with _opened(world) as index:
        index.build_index()


def _seen(world: Path) -> State:
    """All that a project says, looked at in a copy, because searches are counted; and what it finds when it is built anew."""
    with tempfile.TemporaryDirectory(dir=world.parent) as folder:
        copy = Path(folder) / "world"
        shutil.copytree(world, copy)
        with _opened(copy) as index:
            figures = index.stats()
            found: dict[str, State] = {
                "returned": _returned(world),
                "sources": _sources(index),
                "deleted": [url for _, url, *_ in SOURCES if index.was_deleted(url)],
                "statistics": [figures[name] for name in _STATISTICS],  # type: ignore[literal-required]
                "searched": _searched(index),
                "described": _description(index),
            }
            index.build_index()
            found["built"] = [_searched(index), _description(index)]
    return json.loads(json.dumps(found))


def _description(index: EvidenceIndex) -> str:
    """Whether the file that describes a project says what is so now; it can be read whatever was interrupted."""
    if not index.metadata_path.exists():
        return "missing"
    described, wanted = json.loads(index.metadata_path.read_text("utf-8")), json.loads(json.dumps(index.metadata()))
    counted = {"retrieval_stats": None}  # searches are counted, and written with the next change
    return "current" if described | counted == wanted | counted else "stale"


def _returned(world: Path) -> int:
    file = world / "returned"
    return int(file.read_text() or 0) if file.exists() else 0


def _sources(index: EvidenceIndex) -> State:
    """Every version of every URL, with its text and its passages."""
    found = []
    for source in index.sources():
        versions = index.versions(source.url)
        for one in versions:
            spans = [[passage.start, passage.end] for passage in index.passages(one.key)]
            found.append([one.url, one.title, one.quality, one.fetch_date, one.key, index.text(one.key), spans])
    return found


def _searched(index: EvidenceIndex) -> State:
    lists = [index.search(question) for question in _ASKED]
    return [[[one.url, one.title, one.quality, one.content, one.score, one.start, one.end] for one in found] for found in lists]


def _project_scratch(world: Path) -> list[str]:
    """What lies in a project that nobody will read, beside the index and in it."""
    graph = world / "project" / "10_graph"
    kept = {".build.lock", ".index_metadata.json.lock", ".evidence.sqlite3.lock"}
    hidden = [path.name for path in graph.glob(".*") if path.name not in kept]
    return sorted(hidden) + scratch_in(graph / "index", ("bm25",))


def evidence_operations() -> list[Operation]:
    """All that is done to a project. What SQLite makes durable is not seen by Python, so that no power is cut there."""

    def all_that_returned(found: State, old: State, new: State) -> bool:
        count = len(found["sources"]) - len(old["sources"])
        return (
            found["returned"] <= count
            and found["sources"] == new["sources"][: len(found["sources"])]
            and found["deleted"] == old["deleted"]
            and found["searched"] == old["searched"]
        )

    def partly_built(found: State, old: State, new: State) -> bool:
        """Additions may be found before what was deleted is out of the index; it is not found either way."""
        urls = {source[0] for source in new["sources"]}
        changing = {"searched": None, "described": None}
        return found | changing == new | changing and all(one[0] in urls for hits in found["searched"] for one in hits)

    rest = {"look": _seen, "scratch": _project_scratch, "synced_unseen": True}
    return [
        Operation("sources", _built, _add, between=all_that_returned, **rest),
        Operation("build a project again", _changed, _build, between=partly_built, **rest),
    ]
