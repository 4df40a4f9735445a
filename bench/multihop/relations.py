"""Questions that ask for a relation: ``python -m bench.multihop.relations DATA`` writes the last section of ``MULTIHOP.md``.

The questions are made by templates over the collection: a thing that is named, and whom or what a relation leads to. A
relation is read from a sentence that says it ("directed by" and a title of the collection). Some relations are for choosing,
the others judge; their templates differ, too.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np

from bench.common import Data
from bench.writing import page, shown, table
from nlp_retrieval import (
    BeirLoader,
    Bm25Retriever,
    FaissRetriever,
    HoverLoader,
    LinkGraphRetriever,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.core import BaseQueryLoader
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.evaluation.gold import relevant_documents, rows_of
from nlp_retrieval.evaluation.resampling import bootstrap_interval
from nlp_retrieval.retrievers.link_graph import relations
from nlp_retrieval.retrievers.link_graph.graph import LinkGraph, Links
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS


@dataclass(frozen=True)
class Relation:
    """A relation, and how it is said and asked for.

    Args:
        said: pattern of what stands before the name.
        one: a question about what the relation of one thing leads to.
        two: a question that compares two things by what it leads to.
        judges: whether it judges; others are for choosing.
    """

    said: str
    one: str
    two: str
    judges: bool


_FEW = r"(?:[a-z,]{1,12} ){0,3}"
RELATIONS = {
    "director": Relation(
        "directed by ", "Where was the director of {} born?", "Which film has the director who was born later, {} or {}?", False
    ),
    "parent": Relation(
        f"(?:son|daughter) of {_FEW}", "When did the parent of {} die?", "Whose parent died first, {} or {}?", False
    ),
    "founder": Relation(
        "(?:founded|created) by ", "Where did the founder of {} study?", "Were {} and {} founded by compatriots?", False
    ),
    "writer": Relation(
        "written by ", "What nationality is the author of {}?", "Do the authors of {} and {} have the same nationality?", True
    ),
    "spouse": Relation(
        f"(?:married|wife of|husband of) {_FEW}",
        "What is the occupation of {}'s spouse?",
        "Is the spouse of {} older than the spouse of {}?",
        True,
    ),
    "sibling": Relation(
        f"(?:brother|sister) of {_FEW}", "What is {}'s sibling known for?", "Do the siblings of {} and {} share a job?", True
    ),
    "performer": Relation(
        f"(?:song|single|album) by {_FEW}",
        "Which label signed the performer of {}?",
        "Are the performers of {} and {} from the same country?",
        True,
    ),
    "composer": Relation(
        "composed by ", "What awards did the composer of {} win?", "Did the composers of {} and {} win the same award?", True
    ),
    "star": Relation("starring ", "How old is the star of {}?", "Who is older, the star of {} or the star of {}?", True),
    "producer": Relation(
        "produced by ", "Where did the producer of {} grow up?", "Who died earlier, the producer of {} or that of {}?", True
    ),
}
_MOST = 24
_QUALIFIER = re.compile(r" \([^()]*\)$")


def questions(items: Iterable[SearchableItem]) -> Iterator[tuple[str, Query, Gold]]:
    """Yield each question with the name of its relation: at most 24 of one thing and 24 of two for each relation."""
    titled = {item.title: item for item in items if item.title}
    carriers: dict[str, list[str]] = {}
    for title in titled:
        carriers.setdefault(_QUALIFIER.sub("", title), []).append(title)
    for name, relation in RELATIONS.items():
        pattern = re.compile(relation.said)
        found = {title: target for title, item in titled.items() if (target := _target(item, pattern, carriers))}
        pairs = list(found.items())
        order = np.random.default_rng(0).permutation(len(pairs)).tolist()
        for kind, step in (("one", 1), ("two", 2)):
            for first in range(0, min(len(order) // step * step, _MOST * step), step):
                chosen = [pairs[place] for place in order[first : first + step]]
                gold = {title: 1 for pair in chosen for title in pair}
                if len(gold) < 2 * step:
                    continue
                key = f"{name}-{kind}-{first // step}"
                text = getattr(relation, kind).format(*(_QUALIFIER.sub("", title) for title, _ in chosen))
                yield name, Query(query_id=key, text=text), Gold(query_id=key, relevance=gold, by="title")


def _target(item: SearchableItem, pattern: re.Pattern[str], carriers: dict[str, list[str]]) -> str | None:
    """The one title that follows the pattern in a passage; None if there is none, or several carry its name."""
    for match in pattern.finditer(item.content):
        words = item.content[match.end() : match.end() + 60].split(" ")
        for width in (5, 4, 3, 2):
            name = " ".join(words[:width]).rstrip(".,;:")
            bearers = carriers.get(name, [])
            if len(bearers) == 1 and bearers[0] != item.title:
                return bearers[0]
    return None


_AT, _PART, _WORKERS = 5, 120, 6
HEADING = "## The relation that is asked for"
_OWN = "own"
_MODES = ("", "links shuffled", "no list of words")


@dataclass(frozen=True)
class Found:
    """The recall of one question, without the evidence of the relation and with it."""

    group: str
    family: str
    before: float
    after: float


def measured(data: Data, name: str, mode: str, part: int) -> list[Found]:
    """Ask a part of a set of questions."""
    warnings.simplefilter("ignore")
    generation = open_generation(data.work / ("musique" if name == "musique" else "wiki-bm25"))
    opened = _retriever(name).open(generation)
    if mode == "links shuffled":
        graph = opened._graph.graph
        other = np.random.default_rng(0).permutation(graph.n_nodes)
        moved = {kind: Links(other[one.sources], other[one.targets], one.weights) for kind, one in graph.links().items()}
        kinds = {kind: (extractor.along, extractor.against) for kind, extractor in opened._kinds().items()}
        opened._graph = LinkGraph.of(graph.n_nodes, moved).weighted(kinds)
    asked = _asked(data, name, generation.items.stream({"title"}))[part * _PART : (part + 1) * _PART]
    documents = relevant_documents([gold for _, _, gold in asked])
    places = rows_of({key for one in documents for key in one}, generation.items.ids(), generation.items.titles())
    found = []
    with patch.object(relations, "_answers", dict if mode == "no list of words" else relations._answers):
        pools = list(opened.pools([query.text for _, query, _ in asked], at_least=_AT))
    for (group, query, _), keys, pool in zip(asked, documents, pools, strict=True):
        rows = [pool.ranked(DEFAULT_WEIGHTS | weights, _AT)[0] for weights in ({"relation": 0.0}, {})]
        recalls = [float(np.mean([np.isin(places[key], first).any() for key in keys])) for first in rows]
        found.append(Found(group, query.family or query.query_id, *recalls))
    return found


def _retriever(name: str) -> LinkGraphRetriever:
    return LinkGraphRetriever([Bm25Retriever(), FaissRetriever()] if name == "musique" else [Bm25Retriever()])


def _asked(data: Data, name: str, items: Iterable[SearchableItem]) -> list[tuple[str, Query, Gold]]:
    """The questions of a set with their groups."""
    if name == _OWN:
        groups = {False: "own, for choosing", True: "own, judging"}
        named = {"one": "one thing", "two": "two compared"}
        return [
            (f"{groups[RELATIONS[relation].judges]}, {named[query.query_id.split('-')[1]]}", query, gold)
            for relation, query, gold in questions(items)
        ]
    loader: BaseQueryLoader
    if name == "hotpotqa":
        loader, left_out = BeirLoader(str(data.root / "wiki" / "hotpotqa")), {query.family for query in data.hover()}
    elif name == "musique":
        loader, left_out = BeirLoader(str(data.root / "musique")), set()
    else:
        loader, left_out = HoverLoader(data.claims, hops=[int(name[-1])]), set()
    gold = {one.query_id: one for one in loader.gold()}
    kinds: dict[str, str] = {}
    if name == "hotpotqa":
        lines = (data.root / "wiki" / "hotpotqa" / "queries.jsonl").read_text("utf-8").splitlines()
        kinds = {query["_id"]: f"HotpotQA, {query['metadata']['type']}" for query in map(json.loads, lines)}
    shown_as = {"hover2": "HoVer, 2 hops", "hover3": "HoVer, 3 hops", "musique": "MuSiQue"}
    kept = [query for query in loader.queries() if query.query_id not in left_out]
    return [(kinds[one.query_id] if kinds else shown_as[name], one, gold[one.query_id]) for one in kept]


def section(data: Data) -> str:
    """The section as it is written."""
    for name, corpus in (("wiki-bm25", data.corpus), ("musique", data.root / "musique")):
        Searcher([_retriever(name)]).index(BeirLoader(str(corpus)), data.work / name)
    items = open_generation(data.work / "wiki-bm25").items
    sizes = {
        name: len(_asked(data, name, items.stream({"title"}))) for name in (_OWN, "hotpotqa", "hover2", "hover3", "musique")
    }
    jobs = [
        (name, mode, part)
        for (name, size), mode in product(sizes.items(), _MODES)
        if name == _OWN or not mode
        for part in range(-(-size // _PART))
    ]
    groups: dict[str, list[Found]] = {}
    with ProcessPoolExecutor(_WORKERS) as workers:
        for (_, mode, _), found in zip(
            jobs, workers.map(measured, *zip(*[(data, *job) for job in jobs], strict=True)), strict=True
        ):
            for one in found:
                groups.setdefault(f"{one.group}{mode and f', {mode}'}", []).append(one)
    rows = {name: [str(len(found)), *_cells(found)] for name, found in groups.items()}
    text = (Path(__file__).parent / "relations.md").read_text("utf-8")
    return page(text, most=_MOST, weight=DEFAULT_WEIGHTS["relation"], quality=table(_HEADS, rows))


_HEADS = ["", "questions", "without the relation", "with it", "difference"]


def _cells(found: list[Found]) -> list[str]:
    families: list[str | None] = [one.family for one in found]
    before, after = np.array([one.before for one in found]), np.array([one.after for one in found])
    low, high = bootstrap_interval(after - before, families, bounds=(-1, 1))
    return [shown(before, families), shown(after, families), f"{(after - before).mean():+.3f} [{low:+.3f}, {high:+.3f}]"]


def main(arguments: list[str]) -> int:
    """Measure, and write the section anew."""
    if len(arguments) != 1 or not (data := Data.of(arguments[0])).corpus.is_file() or not (data.root / "musique").is_dir():
        print("usage: python -m bench.multihop.relations DATA   (DATA holds wiki/ and musique/)")
        return 2
    write(data)
    return 0


def write(data: Data) -> None:
    """Replace the section in ``bench/MULTIHOP.md``."""
    path = Path(__file__).parents[1] / "MULTIHOP.md"
    before = path.read_text("utf-8").split(f"{HEADING}\n")[0].rstrip("\n")
    path.write_text(f"{before}\n\n{section(data)}", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
