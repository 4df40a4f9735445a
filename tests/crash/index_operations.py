"""Operations on an index, each small: building, replacing, adding, updating, deleting, compacting."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hashed_tokens import HashedTokens
from hashed_words import HashedWords
from postgres_server import VARIABLE
from sparse_models import HashedTerms

from crash.operation import Operation, State
from nlp_retrieval import (
    Bm25Retriever,
    ColbertRetriever,
    FaissRetriever,
    FeedbackRetriever,
    LinkGraphRetriever,
    PgvectorRetriever,
    PyseriniRetriever,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import IndexMismatchError, IndexMissingError
from nlp_retrieval.retrievers.splade import SpladeRetriever

WORDS = "fox whale tree river bridge castle novel film director painter island queen album singer orbit harbour".split()
QUESTIONS = ["whale in the river", "castle novel", "who painted the island queen", "Page orbit 3"]
TWO = ("bm25", "hnsw")


def corpus(seed: int, count: int = 24, first: int = 0) -> list[SearchableItem]:
    """Items ``d<first>``, ... with texts that the seed decides; titles name earlier titles, so that there are links."""
    draw = random.Random(seed)
    titles = [f"{draw.choice(WORDS).title()} {draw.choice(WORDS).title()} {row}" for row in range(count)]
    items = []
    for row in range(count):
        mentioned = f" near {titles[draw.randrange(row)]}" if row % 3 == 1 else ""
        content = " ".join(draw.choices(WORDS, k=draw.randint(4, 9))) + mentioned
        metadata = {"title": titles[row], "year": 2000 + row, "seed": seed}
        items.append(SearchableItem(item_id=f"d{first + row}", content=content, metadata=metadata))
    return items


MADE: dict[str, Callable[[], BaseRetriever]] = {
    "bm25": lambda: Bm25Retriever(backend="numpy"),
    "flat": lambda: FaissRetriever(HashedWords(), index="flat"),
    "hnsw": lambda: FaissRetriever(HashedWords(), index="hnsw"),
    "colbert": lambda: ColbertRetriever(HashedTokens()),
    "splade": lambda: SpladeRetriever(HashedTerms(), backend="numpy"),
    "feedback": lambda: FeedbackRetriever([FaissRetriever(HashedWords(), index="flat")], document="seed", position="year"),
    "links": lambda: LinkGraphRetriever([Bm25Retriever(backend="numpy")]),
    "vectors": lambda: PgvectorRetriever(HashedWords(), url=f"env:{VARIABLE}", index_type="hnsw"),
    "lucene": PyseriniRetriever,
}
"""By label, how a retriever is made; a system adds its own."""


def retrievers(*labels: str) -> dict[str, BaseRetriever]:
    """Retrievers of these labels."""
    return {label: MADE[label]() for label in labels}


def index_of(world: Path) -> Path:
    """Where an operation keeps its index: neither the folder nor the one above it is there before."""
    return world / "indexes" / "wiki"


def index(world: Path, labels: tuple[str, ...], items: list[SearchableItem], *, replace: bool = False) -> None:
    """Index items into the index of a world."""
    Searcher(retrievers(*labels)).index(items, index_of(world), replace=replace)


def _changed(world: Path, labels: tuple[str, ...], change: Callable[[Searcher], object]) -> None:
    change(Searcher(retrievers(*labels)).open(index_of(world)))


def searched(world: Path, labels: tuple[str, ...]) -> State:
    """What each retriever finds in the index of a world (ids, scores, texts and metadata), and in how many segments.

    Compacting changes no answer, to the last bit: the segments show it.
    """
    found: dict[str, State] = {}
    for label in labels:
        try:
            searcher = Searcher(retrievers(label)).open(index_of(world))
        except (IndexMissingError, IndexMismatchError) as error:
            found[label] = type(error).__name__
            continue
        found["segments"] = len(searcher.opened.manifest.corpus.segments)
        lists = searcher.search(QUESTIONS, 6)
        found[label] = [[[hit.item.item_id, hit.score, hit.item.text, hit.item.metadata] for hit in hits] for hits in lists]
    return json.loads(json.dumps(found))


def index_scratch(world: Path, labels: tuple[str, ...] = TWO) -> list[str]:
    """What the index of a world holds that nobody will read."""
    return scratch_in(index_of(world), labels)


def scratch_in(directory: Path, labels: tuple[str, ...]) -> list[str]:
    """What an index directory holds beside what its manifest names, after a change of nothing.

    The operation itself leaves what it had open; the next writer removes it.
    """
    if not (directory / "manifest.json").exists():
        return sorted(entry.name for entry in directory.iterdir()) if directory.exists() else []
    try:
        searcher = Searcher(retrievers(*labels)).open(directory)
    except IndexMissingError:
        searcher = Searcher(retrievers(*labels[:1])).open(directory)
    searcher.delete([], auto_compact=False)
    named = {"manifest.json", ".lock"} | _folders_in(json.loads((directory / "manifest.json").read_bytes()))
    return sorted(entry.name for entry in directory.iterdir() if entry.name not in named)


def _folders_in(content: State) -> set[str]:
    """All values of ``folder``, at any depth."""
    if isinstance(content, dict):
        own = {content["folder"]} if "folder" in content else set()
        return own.union(*map(_folders_in, content.values()))
    return set().union(*map(_folders_in, content)) if isinstance(content, list) else set()


def index_operations() -> list[Operation]:
    """All that is done to an index: with two retrievers, with every one that keeps files, with a server, and with Lucene."""
    return [
        *engine_operations("", TWO),
        *engine_operations(", every engine", ("bm25", "flat", "hnsw", "colbert", "splade", "links", "feedback")),
        *engine_operations(", PostgreSQL", ("bm25", "vectors")),
        *engine_operations(", Lucene", ("bm25", "lucene")),
    ]


def engine_operations(suffix: str, labels: tuple[str, ...]) -> list[Operation]:
    """All that is done to an index of these retrievers."""
    whole = partial(index, labels=labels, items=corpus(1))
    server = "vectors" in labels  # which a record of files cannot take back

    def updated(change: Callable[[Searcher], object]) -> Callable[[Path], None]:
        return partial(_changed, labels=labels, change=change)

    def fragmented(world: Path) -> None:
        whole(world)
        _changed(world, labels, lambda searcher: searcher.add(corpus(3, 5, 24), auto_compact=False))
        _changed(world, labels, lambda searcher: searcher.delete(["d2", "d25"], auto_compact=False))

    many = partial(Searcher.add, items=corpus(3, 14, 24))
    changes = [
        ("index", nothing, whole, None),
        ("index beside an index", partial(index, labels=labels[:1], items=corpus(1)), whole, None),
        ("index, replace=True", whole, partial(index, labels=labels, items=corpus(2), replace=True), None),
        ("add", whole, updated(lambda searcher: searcher.add(corpus(3, 4, 24))), None),
        ("add and join", whole, updated(many), updated(lambda searcher: many(searcher, auto_compact=False))),
        ("update", whole, updated(lambda searcher: searcher.update(corpus(4, 5, 20))), None),
        ("delete", whole, updated(lambda searcher: searcher.delete(["d3", "d17"])), None),
        ("compact", fragmented, updated(Searcher.compact), None),
    ]
    look, scratch = partial(searched, labels=labels), partial(index_scratch, labels=labels)
    return [
        Operation(f"{name}{suffix}", prepare, run, look, scratch, halfway=halfway, synced_unseen=server)
        for name, prepare, run, halfway in changes
    ]


def nothing(world: Path) -> None:
    """Leave a world as it is."""
    del world
