"""What was added and what was dropped between editions: ``python -m bench.policy.changes DATA MODEL`` prints the tables.

DATA holds policy/cat_changes; MODEL is a sentence-transformers model. A row is a system; recall@10 with the country as a
filter, over the questions that name the country (``named``) and those that say "the country" (``filter``), and without a filter
over those that name it. More than half of the questions concern one country, so all is told without it too. The second table
compares the relations found between editions with the collection's own.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.common import Data, arguments
from bench.policy.searchers import RememberingEncoder
from bench.writing import table
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, Query, Searcher
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.systems.policy.hop.ranking import EDITED
from nlp_retrieval.systems.policy.hop.relation import TEMPORAL_FOLLOWS
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever

_LARGEST, _K = "Ethiopia", 10
OWN = "hop, as it comes"

Asked = tuple[Query, set[int]]
"""A question with its gold rows."""


def measured(data: Data, model: str) -> tuple[str, dict[str, float]]:
    """Return the tables, and recall@10 with the country as a filter by row."""
    folder, index = data.root / "policy" / "cat_changes", data.work / "policy-changes"
    lexical, dense = Bm25Retriever(), FaissRetriever(RememberingEncoder(model))
    hop, loader = HopRetriever(dense), BeirLoader(folder)
    Searcher([lexical, dense, hop]).index(loader, index)
    generation = open_generation(index)
    rows = {item_id: row for row, item_id in enumerate(generation.items.ids())}
    gold = {one.query_id: {rows[item_id] for item_id in one.relevance} for one in loader.gold()}
    asked = [(query, gold[query.query_id]) for query in loader.queries()]
    whole = hop.open(generation)
    opened = {
        "BM25": lexical.open(generation),
        "dense": dense.open(generation),
        "hop, changes=none": HopRetriever(dense, changes="none").open(generation),
        OWN: whole,
        "hop over BM25": HopRetriever(lexical).open(generation),
        "hop, changes shuffled": _shuffled(hop.open(generation)),
    }
    found = {name: [_recalls(one, generation, asked, filtered=on) for on in (True, False)] for name, one in opened.items()}
    about = {
        key: np.array([str(query.metadata[key]) for query, _ in asked]) for key in ("variant", "country", "style", "edition")
    }
    named, others, later = about["variant"] == "named", about["country"] != _LARGEST, about["edition"] == "later"
    plain = about["style"] == "plain"
    columns = {
        "both": (0, named | True), "named": (0, named), "filter": (0, ~named), "no filter": (1, named),
        f"both, without {_LARGEST}": (0, others), f"no filter, without {_LARGEST}": (1, named & others), "plain": (0, plain),
        "paraphrase": (0, ~plain), "added": (0, later), "dropped": (0, ~later),
    }  # fmt: skip
    cells = {name: [f"{both[which][part].mean():.3f}" for which, part in columns.values()] for name, both in found.items()}
    text = f"{table(['recall@10', *columns], cells)}\n\n{_judged(whole, folder / 'relations.tsv', rows)}"
    return text, {name: float(filtered.mean()) for name, (filtered, _) in found.items()}


def _recalls(opened: BaseRetriever, generation: Generation, asked: Sequence[Asked], *, filtered: bool) -> NDArray[np.float64]:
    recalls = []
    for query, gold in asked:
        allowed = generation.items.mask({"country": str(query.metadata["country"])}) if filtered else None
        hits = opened.find([query.text], _K, allowed)
        recalls.append(len(gold & set(hits.rows.tolist())) / len(gold))
    return np.array(recalls)


def _shuffled(opened: HopRetriever) -> HopRetriever:
    """The control: how much of a passage is new or gone is dealt out anew among the passages of the same edition."""
    changes = opened._known
    new, gone = changes.new.copy(), changes.gone.copy()
    draw = np.random.default_rng(0)
    editions = np.stack([changes.families, changes.versions])
    for edition in np.unique(editions, axis=1).T:
        members = np.flatnonzero((editions == edition[:, None]).all(0))
        dealt = draw.permutation(members)
        new[members], gone[members] = new[dealt], gone[dealt]
    opened._known = replace(changes, new=new, gone=gone)
    return opened


def _judged(opened: HopRetriever, path: Path, rows: dict[str, int]) -> str:
    """Precision and recall of counterparts, and of what is new and gone, by the collection's own relations."""
    relations, changes = opened.relations, opened._known
    temporal = relations.types == TEMPORAL_FOLLOWS
    pairs = set(zip(relations.sources[temporal].tolist(), relations.targets[temporal].tolist(), strict=True))
    with path.open(encoding="utf-8", newline="") as file:
        gold = list(csv.DictReader(file, delimiter="\t"))
    new, gone = (set(np.flatnonzero(np.nan_to_num(one) >= EDITED).tolist()) for one in (changes.new, changes.gone))

    def of(side: str, *names: str) -> set[int]:
        return {rows[one[side]] for one in gold if one["relation"] in names}

    same = [one for one in gold if one["relation"] in ("unchanged", "edited")]
    told: dict[str, tuple[set[int] | set[tuple[int, int]], set[int] | set[tuple[int, int]]]] = {
        "counterparts": (pairs, {(rows[one["later"]], rows[one["earlier"]]) for one in same}),
        "changed (later edition)": (new, of("later", "edited", "added")),
        "added, no counterpart": (new - {later for later, _ in pairs}, of("later", "added")),
        "dropped, no counterpart": (gone - {earlier for _, earlier in pairs}, of("earlier", "dropped")),
    }
    cells = {}
    for name, (found, wanted) in told.items():
        right = len(found & wanted)
        shares = [f"{right / max(1, len(found)):.3f}", f"{right / len(wanted):.3f}"]
        cells[name] = [*shares, str(len(found)), str(len(wanted))]
    return table(["between editions", "precision", "recall", "found", "gold"], cells)


if __name__ == "__main__":
    data, model = arguments(__doc__, 2)
    print(measured(Data.of(data), model)[0])
