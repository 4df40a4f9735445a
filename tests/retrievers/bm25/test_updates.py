"""bm25 after updates: to the last bit, it answers as an index built at once from the items that are there."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path

from soaking import Figures

from nlp_retrieval import Bm25Retriever, RetrievalWarning, SearchableItem, Searcher
from nlp_retrieval.core.filters import Where

WORDS = "river bridge Köln museum Kubrick runs running village queen 1914 guitar physics straße Москва 日本語 the of".split()
ONCE = [f"word{number}" for number in range(200)]  # so many that most stand in one item or none
BACKENDS = ["numpy", "numba"]

Found = list[list[tuple[str, str, float, dict[str, float]]]]


def some_item(draw: random.Random, item_id: str) -> SearchableItem:
    """An item whose text is often short, empty, or of stop words alone."""
    words = draw.choices(WORDS, k=draw.choice([0, 1, 2, 8])) + draw.choices(ONCE, k=draw.randrange(3))
    return SearchableItem(item_id=item_id, content=" ".join(words), metadata={"part": draw.randrange(3)})


def some_items(draw: random.Random, ids: Iterable[str]) -> list[SearchableItem]:
    return [some_item(draw, item_id) for item_id in ids]


def some_queries(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    found = [draw.choices([*WORDS, *ONCE[:40]], k=1 + number % 6) for number in range(count)]
    return list(dict.fromkeys(" ".join(words + words[:1]) for words in found))


def answers(searcher: Searcher, queries: list[str], k: int, where: Where | None = None) -> Found:
    lists = searcher.search(queries, k, where)
    return [[(hit.item.item_id, hit.item.content, hit.score, dict(hit.signals)) for hit in hits] for hits in lists]


def found(searcher: Searcher, queries: list[str], k: int = 1000, where: Where | None = None) -> Found:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # for words that no item holds, or deleted ones alone
        return answers(searcher, queries, k, where)


def at_once(items: Iterable[SearchableItem], folder: Path, **settings: object) -> Searcher:
    shutil.rmtree(folder, ignore_errors=True)
    searcher = Searcher([Bm25Retriever(**settings)])  # type: ignore[arg-type]
    searcher.index(items, folder)
    return searcher


def files_of(searcher: Searcher) -> list[dict[str, bytes]]:
    """The files of every segment of the index of the only retriever."""
    folders = [searcher.opened.path / segment.folder for segment in searcher.index_records()[0].segments]
    return [{path.name: path.read_bytes() for path in sorted(folder.iterdir())} for folder in folders]


def changed(draw: random.Random, searcher: Searcher, items: dict[str, SearchableItem], number: int) -> None:
    """Change an index, and the items that should be in it, in one of three ways."""
    kind = draw.choice(["add", "add", "update", "delete"])
    ids = draw.sample(sorted(items), draw.randint(1, len(items)))
    if kind == "add":
        gone = [item_id for item_id in map("d{}".format, range(12)) if item_id not in items]
        new = some_items(draw, [*gone[: draw.randrange(3)], *(f"e{number}-{n}" for n in range(draw.randint(1, 6)))])
        searcher.add(new, auto_compact=False)
        items.update((item.item_id, item) for item in new)
    elif kind == "update":
        new = some_items(draw, [*ids[: draw.randint(1, 5)], f"u{number}"])
        searcher.update(new, auto_compact=False)
        for item in new:
            items.pop(item.item_id, None)
            items[item.item_id] = item
    elif len(ids) < len(items):
        searcher.delete(ids, auto_compact=False)
        for item_id in ids:
            del items[item_id]


def test_after_any_updates_answers_are_those_of_an_index_built_at_once(tmp_path: Path, effort: int, figures: Figures) -> None:
    compared = 0
    for seed in range(4 * effort):
        draw = random.Random(seed)
        settings = {"backend": BACKENDS[seed % 2], "k1": draw.choice([0.0, 0.9, 1.7]), "b": draw.choice([0.0, 0.4, 1.0])}
        settings["feedback"] = (None, "rm3")[seed % 2]
        items = {item.item_id: item for item in some_items(draw, [f"d{number}" for number in range(draw.randint(1, 12))])}
        searcher = at_once(items.values(), tmp_path / "index", **settings)
        queries = some_queries(seed, 12)
        for number in range(5):
            changed(draw, searcher, items, number)
            if number % 2 == 0:
                whole = at_once(items.values(), tmp_path / "whole", **settings)
                for k, where in ((1000, None), (2, None), (1000, {"part": 1}), (3, {"part": {"gte": 1}})):
                    assert found(searcher, queries, k, where) == found(whole, queries, k, where), (seed, number, k, where)
                    compared += len(queries)
        searcher.compact()
        assert files_of(searcher) == files_of(at_once(items.values(), tmp_path / "whole", **settings)), seed
        assert found(searcher, queries) == found(Searcher([Bm25Retriever(**settings)]).open(tmp_path / "whole"), queries)
    figures.add(
        "Live updates", "bm25: answers after updates", compared, compared, "to the last bit those of an index built at once"
    )
