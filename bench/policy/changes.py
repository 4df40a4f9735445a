"""What was added and what was dropped between editions: ``python -m bench.policy.changes DATA MODEL`` prints the tables.

DATA holds policy/cat_changes; MODEL is a sentence-transformers model. A row is a system; recall@10 with the country as a
filter, over the questions that name the country (``named``) and those that say "the country" (``filter``), and without a filter
over those that name it. More than half of the questions concern one
country, so all is told without it too. The second table compares the relations found between editions with the collection's
own.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.common import Data
from bench.policy.remembering import RememberingEncoder
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, Query, Searcher
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.systems.policy.hop.ranking import EDITED
from nlp_retrieval.systems.policy.hop.relation import TEMPORAL_FOLLOWS
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever

_LARGEST = "Ethiopia"
_K = 10
OWN = "hop, as it comes"

Found = NDArray[np.float64]
Recalls = Callable[[bool], Found]
"""Recall of each question, with the country as a filter or without."""


@dataclass(frozen=True)
class Question:
    """A question with its gold rows."""

    query: Query
    gold: frozenset[int]

    @property
    def country(self) -> str:
        return str(self.query.metadata["country"])

    @property
    def names_it(self) -> bool:
        """Whether the text names the country."""
        return self.query.metadata["variant"] == "named"


@dataclass(frozen=True)
class Changes:
    """What was measured.

    Args:
        text: the tables.
        recall: recall@10 with the country as a filter, by row.
    """

    text: str
    recall: dict[str, float]


def main(arguments: list[str]) -> int:
    """Measure, and print the tables."""
    if len(arguments) != 2 or not (Path(arguments[0]) / "policy" / "cat_changes").is_dir():
        sys.stdout.write("usage: python -m bench.policy.changes DATA MODEL   (DATA holds policy/cat_changes)\n")
        return 2
    sys.stdout.write(measured(Data.of(arguments[0]), arguments[1]).text)
    return 0


def measured(data: Data, model: str) -> Changes:
    """Measure."""
    folder, index = data.root / "policy" / "cat_changes", data.work / "policy-changes"
    lexical, dense = Bm25Retriever(), FaissRetriever(RememberingEncoder(model))
    hop = HopRetriever(dense)
    loader = BeirLoader(folder)
    Searcher([lexical, dense, hop]).index(loader, index)
    generation = open_generation(index)
    rows = {item_id: row for row, item_id in enumerate(generation.items.ids())}
    gold = {one.query_id: one for one in loader.gold()}
    questions = [
        Question(query, frozenset(rows[item_id] for item_id in gold[query.query_id].relevance)) for query in loader.queries()
    ]

    def recalls(retriever: BaseRetriever) -> Recalls:
        return lambda filtered: _recalls(retriever.open(generation), generation, questions, filtered)

    measures: dict[str, Recalls] = {
        "BM25": recalls(lexical),
        "dense": recalls(dense),
        "hop, changes=none": recalls(_with(hop, changes="none")),
        OWN: recalls(hop),
        "hop over BM25": recalls(_with(hop, start=lexical)),
        "hop, changes shuffled": lambda filtered: _shuffled(hop, generation, questions, filtered),
    }
    found = {name: (of(True), of(False)) for name, of in measures.items()}
    lines = [_HEAD, *(_line(name, questions, *both) for name, both in found.items()), ""]
    lines += _judged(hop, generation, folder / "relations.tsv", rows)
    return Changes("\n".join(lines) + "\n", {name: float(filtered.mean()) for name, (filtered, _) in found.items()})


_HEAD = (
    f"{'recall@10':26} {'both':>6} {'named':>6} {'filter':>6} {'no filter':>9} | without {_LARGEST}: {'both':>6} "
    f"{'no filter':>9} | {'plain':>6} {'paraphrase':>10} | {'added':>6} {'dropped':>7}"
)


def _line(name: str, questions: Sequence[Question], filtered: Found, whole: Found) -> str:
    named = np.array([one.names_it for one in questions])
    others = np.array([one.country != _LARGEST for one in questions])
    plain = np.array([one.query.metadata["style"] == "plain" for one in questions])
    added = np.array([one.query.metadata["edition"] == "later" for one in questions])  # to tell the questions apart, no more
    numbers = (filtered, filtered[named], filtered[~named], whole[named])
    apart = (filtered[others], whole[named & others])
    kinds = (filtered[plain], filtered[~plain]), (filtered[added], filtered[~added])
    left = f"{name:26} " + " ".join(f"{one.mean():{width}.3f}" for one, width in zip(numbers, (6, 6, 6, 9), strict=True))
    middle = " " * (10 + len(_LARGEST)) + " ".join(f"{one.mean():{width}.3f}" for one, width in zip(apart, (6, 9), strict=True))
    right = f"{kinds[0][0].mean():6.3f} {kinds[0][1].mean():10.3f} | {kinds[1][0].mean():6.3f} {kinds[1][1].mean():7.3f}"
    return f"{left} | {middle} | {right}"


def _recalls(opened: BaseRetriever, generation: Generation, questions: Sequence[Question], filtered: bool) -> Found:
    recalls = []
    for one in questions:
        allowed = generation.items.mask({"country": one.country}) if filtered else None
        hits = opened.find([one.query.text], _K, len(generation.items), allowed)
        recalls.append(len(one.gold & set(hits.rows.tolist())) / len(one.gold))
    return np.array(recalls)


def _with(hop: HopRetriever, **settings: object) -> HopRetriever:
    return HopRetriever(**({"start": hop.start} | settings))  # type: ignore[arg-type]


def _shuffled(hop: HopRetriever, generation: Generation, questions: Sequence[Question], filtered: bool) -> Found:
    """The control: how much of a passage is new or gone is dealt out anew among the passages of the same edition."""
    opened = hop.open(generation)
    changes = opened._known
    new, gone = changes.new.copy(), changes.gone.copy()
    draw = np.random.default_rng(0)
    editions = np.stack([changes.families, changes.versions])
    for edition in np.unique(editions, axis=1).T:
        members = np.flatnonzero((editions == edition[:, None]).all(0))
        dealt = draw.permutation(members)
        new[members], gone[members] = new[dealt], gone[dealt]
    opened._known = replace(changes, new=new, gone=gone)
    return _recalls(opened, generation, questions, filtered)


def _judged(hop: HopRetriever, generation: Generation, path: Path, rows: dict[str, int]) -> list[str]:
    """Precision and recall of counterparts, and of what is new and gone, by the collection's own relations."""
    opened = hop.open(generation)
    relations, changes = opened.relations, opened._known
    temporal = relations.types == TEMPORAL_FOLLOWS
    pairs = set(zip(relations.sources[temporal].tolist(), relations.targets[temporal].tolist(), strict=True))
    with path.open(encoding="utf-8", newline="") as file:
        gold = list(csv.DictReader(file, delimiter="\t"))
    of = {name: [one for one in gold if one["relation"] == name] for name in ("unchanged", "edited", "added", "dropped")}
    gold_pairs = {(rows[one["later"]], rows[one["earlier"]]) for one in of["unchanged"] + of["edited"]}
    later, earlier = ({row for pair in pairs for row in pair[side : side + 1]} for side in (0, 1))
    is_new, is_gone = np.nan_to_num(changes.new) >= EDITED, np.nan_to_num(changes.gone) >= EDITED
    told: dict[str, tuple[set[int] | set[tuple[int, int]], set[int] | set[tuple[int, int]]]] = {
        "counterparts": (pairs, gold_pairs),
        "changed (later edition)": (
            set(np.flatnonzero(is_new).tolist()), {rows[one["later"]] for one in of["edited"] + of["added"]},
        ),
        "added, no counterpart": (
            set(np.flatnonzero(is_new).tolist()) - later, {rows[one["later"]] for one in of["added"]},
        ),
        "dropped, no counterpart": (
            set(np.flatnonzero(is_gone).tolist()) - earlier, {rows[one["earlier"]] for one in of["dropped"]},
        ),
    }  # fmt: skip
    lines = [f"{'between editions':26} {'precision':>9} {'recall':>6} {'found':>6} {'gold':>6}"]
    for name, (found, wanted) in told.items():
        right = len(found & wanted)
        lines.append(f"{name:26} {right / max(1, len(found)):9.3f} {right / len(wanted):6.3f} {len(found):6} {len(wanted):6}")
    return lines


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
