"""Is a question addressed at all? ``python -m bench.policy.silence DATA`` prints the section of ``bench/POLICY.md``.

Each country is asked the eight questions of the profile ``climate``: as it is, and with what answers a question withheld.
Withheld are the gold passages of the question's number and their near-duplicates, and, since gold by filing is incomplete, also
what a classifier of terms, which learned from the gold of other countries, files there. A country is judged by the border that
the countries of the other four folds give: at it, ``LOST`` of their questions as they are would be called silent. Controls
withhold as many passages at random, or the gold of another question, and take the border from other questions too. Plans of
other matters with a title of a climate plan are made of encyclopaedia passages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, diags

from bench.common import Data
from bench.policy.keywords import gold_of
from bench.policy.values import judged_values
from bench.writing import table
from nlp_retrieval import BeirLoader, Bm25Retriever, SearchableItem, Searcher
from nlp_retrieval.rerankers import load_profile
from nlp_retrieval.systems.policy.running_text import PlainPassages
from nlp_retrieval.systems.policy.silence import INTERCEPT, WEIGHT, Silence, beyond
from nlp_retrieval.systems.policy.study import PolicyStudy
from nlp_retrieval.systems.policy.values import values_of
from nlp_retrieval.text import stems_of_language

SETS = {"cat": "Climate Action Tracker", "ndc": "contributions, long answers", "ndc_actions": "contributions, measures"}
AS_IT_IS, OTHER, CLEARED, SHUFFLED, WITHHELD = "as it is", "other matters", "cleared", "as many at random", "gold withheld"
MATCHED, ANOTHER = "as many as gold at random", "gold of another question"
LOST = 0.015
"""Share of the questions as they are that may be called silent, where the border is chosen."""

_NEAR, _FILED, _FEWEST, _FOLDS = 0.5, 0.3, 4, 5

_TITLE = "{}: climate plan 2030"


@dataclass(frozen=True)
class Cell:
    """A question to a country under one condition: how much more its sentences speak in the keywords than those of others.

    A sentence that holds the value that is asked for answers; here any of the plan does, where a study looks at the best one.
    """

    collection: str
    country: str
    question: int
    condition: str
    keywords: float
    value: bool

    def addressed(self, above: float) -> bool:
        """Whether it is, where less than that and that itself is silence."""
        return self.value or self.keywords > above


def cells_of(
    name: str, items: BeirLoader | list[SearchableItem], gold: Mapping[tuple[str, int], set[str]], folder: Path
) -> Iterator[Cell]:
    """Yield the cells of a collection; without gold, those of plans of other matters, which are judged alone."""
    profile, draw = load_profile("climate"), np.random.default_rng(0)
    searcher = Searcher([Bm25Retriever()])
    searcher.index(items, folder, replace=True)
    study, finder = PolicyStudy(profile, searcher), Silence(profile, None)
    passages = {item.item_id: item for item in (items.stream() if isinstance(items, BeirLoader) else items)}
    bags = {one: set(item.content.lower().split()) for one, item in passages.items()}
    filed, compared = _filed(passages, gold) if gold else {}, study.compared(study.settings())
    for country in study.subjects:
        own = [item for item in passages.values() if item.metadata["country"] == country]
        plain = PlainPassages(own, profile)
        rest = [covered for name, covered in compared.items() if name != country]
        table = {item.item_id: finder.covered([item], plain) for item in own}
        known = list(table)
        said = {item.item_id: plain.split(item)[0] for item in own}
        kinds = {question.value for question in profile.questions if question.value is not None}
        held: dict[str | None, set[str]] = {kind: {one for one in known if values_of(said[one], kind)} for kind in kinds}
        for place, question in enumerate(profile.questions):
            wanted = gold.get((country, question.number), set())
            if not gold:
                more = beyond(np.concatenate(list(table.values())), rest)
                value = bool(held.get(question.value))
                yield Cell(name, country, question.number, OTHER, more[place], value)
                continue
            near = {one for one in known if any(_alike(bags[one], bags[other]) for other in wanted)}
            filed_there = {one for one in known if filed.get(question.number, {}).get(one, 0.0) >= _FILED}
            gone, cleared = wanted | near, wanted | near | filed_there
            if not wanted or len(known) - len(cleared) < _FEWEST:
                continue
            shuffled, matched = (
                set(draw.choice(known, len(some & set(known)), replace=False).tolist()) for some in (cleared, gone)
            )
            numbers = [other.number for other in profile.questions if other.number != question.number]
            others = [gold[country, number] - gone for number in numbers if gold.get((country, number))]
            withheld = {AS_IT_IS: set(), CLEARED: cleared, SHUFFLED: shuffled, WITHHELD: gone, MATCHED: matched}
            withheld[ANOTHER] = others[draw.integers(len(others))] if others else set()
            for condition, without in withheld.items():
                more = beyond(np.concatenate([table[one] for one in known if one not in without]), rest)
                value = bool(held.get(question.value, set()) - without)
                yield Cell(name, country, question.number, condition, more[place], value)


def _alike(words: set[str], others: set[str]) -> bool:
    return len(words & others) >= _NEAR * len(words | others)


def _filed(passages: Mapping[str, SearchableItem], gold: Mapping[tuple[str, int], set[str]]) -> dict[int, dict[str, float]]:
    """By question, how surely its terms file each passage there; learned from the countries of the other four folds."""
    stems, names = stems_of_language("english"), list(passages)
    bags = [set(stems.words(passages[name].content)) for name in names]
    vocabulary = {word: place for place, word in enumerate(sorted(set().union(*bags)))}
    places = [(row, vocabulary[word]) for row, bag in enumerate(bags) for word in bag]
    matrix = csr_matrix((np.ones(len(places)), tuple(zip(*places, strict=True))), (len(names), len(vocabulary)))
    counts = np.asarray(matrix.sum(axis=0)).ravel()
    matrix = (matrix @ diags(np.where(counts >= 3, np.log(len(names) / counts), 0.0))).tocsr()
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    matrix = (diags(1 / np.maximum(lengths, 1e-9)) @ matrix).tocsr()
    countries = [str(passages[name].metadata["country"]) for name in names]
    order = sorted(set(countries))
    fold = np.array([order.index(country) % 5 for country in countries])
    filed = {}
    for number in sorted({key[1] for key in gold}):
        there = set().union(*(members for key, members in gold.items() if key[1] == number))
        labels, found = np.array([name in there for name in names]), np.zeros(len(names))
        for one in range(5):
            weights = fitted(matrix[fold != one], labels[fold != one], 1e-3 * (fold != one).sum())
            found[fold == one] = _share(matrix[fold == one], weights)
        filed[number] = dict(zip(names, found.tolist(), strict=True))
    return filed


def fitted(columns: Any, labels: NDArray[np.bool_], penalty: float = 0.1) -> NDArray[np.float64]:
    """Weights of a logistic regression with an intercept, in which both classes weigh the same."""
    signs = np.where(labels, 1.0, -1.0)
    weight = np.where(labels, 0.5 / max(1, labels.sum()), 0.5 / max(1, (~labels).sum())) * len(labels)

    def loss(beta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = signs * (columns @ beta[:-1] + beta[-1])
        slope = -weight * signs / (1 + np.exp(np.clip(margin, -50, 50)))
        whole = (weight * np.logaddexp(0, -margin)).sum() + penalty * (beta[:-1] ** 2).sum()
        return float(whole), np.append(columns.T @ slope + 2 * penalty * beta[:-1], slope.sum())

    return np.asarray(minimize(loss, np.zeros(columns.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 100}).x)


def _share(columns: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.clip(columns @ weights[:-1] + weights[-1], -50, 50))))


def border(cells: list[Cell]) -> float:
    """What ``LOST`` of the questions as they are have at most; many have the same, those of plans with none of the keywords."""
    return float(np.quantile([cell.keywords for cell in cells if cell.condition == AS_IT_IS], LOST, method="lower"))


def weight(cells: list[Cell]) -> float:
    """How steeply the score rises with the keywords: as it is against cleared."""
    used = [cell for cell in cells if cell.condition in {AS_IT_IS, CLEARED}]
    columns = np.array([[cell.keywords] for cell in used])
    return float(
        fitted(columns / columns.std(), np.array([cell.condition == AS_IT_IS for cell in used]), 0.5)[0] / columns.std()
    )


def written(cells: list[Cell]) -> str:
    """The tables: precision and recall of "not addressed" on countries that had no part in the border, beside the controls."""
    names = sorted({cell.country for cell in cells})
    fold = {name: place % _FOLDS for place, name in enumerate(names)}
    others = [[cell for cell in cells if fold[cell.country] != one] for one in range(_FOLDS)]
    of_folds = list(map(border, others))
    of_both = [[border([cell for cell in some if cell.question % 2 != odd]) for odd in (0, 1)] for some in others]
    verdicts = {
        "as shipped": {id(cell): cell.addressed(-INTERCEPT / WEIGHT) for cell in cells},
        "by folds": {id(cell): cell.addressed(of_folds[fold[cell.country]]) for cell in cells},
        "by folds, other questions": {
            id(cell): cell.addressed(of_both[fold[cell.country]][cell.question % 2]) for cell in cells
        },
    }
    rows = {}
    of_all = [("", condition) for condition in (CLEARED, SHUFFLED, WITHHELD, MATCHED, ANOTHER)]
    for collection, condition in of_all + [(name, CLEARED) for name in SETS]:
        here = [cell for cell in cells if collection in {"", cell.collection} and cell.condition in {AS_IT_IS, condition}]
        rows[", ".join(filter(None, [condition, SETS.get(collection)]))] = [
            str(len({(cell.collection, cell.country) for cell in here})),
            str(len(here) // 2),
            *(figure for said in verdicts.values() for figure in _figures(here, said)),
        ]
    heads = ["", "countries", "cells"]
    heads += [f"{name}: {figure}" for name in verdicts for figure in ("precision", "recall")]
    silent = {}
    for condition, title in ((AS_IT_IS, "questions as they are"), (OTHER, "plans of other matters")):
        some = [cell for cell in cells if cell.condition == condition]
        silent[title] = [
            str(len(some)),
            *(f"{np.mean([not said[id(cell)] for cell in some]):.3f}" for said in verdicts.values()),
        ]
    return f"{table(heads, rows)}\n\n{table(['called not addressed', 'cells', *verdicts], silent)}"


def _figures(cells: list[Cell], addressed: Mapping[int, bool]) -> list[str]:
    """Precision and recall of "not addressed", with intervals by resampling countries."""
    names = sorted({cell.country for cell in cells})
    counts = np.zeros((len(names), 3))
    for cell in cells:
        silent, said = cell.condition != AS_IT_IS, not addressed[id(cell)]
        counts[names.index(cell.country)] += (silent and said, said, silent)
    draw = np.random.default_rng(0)
    samples = [counts[draw.integers(0, len(names), len(names))].sum(axis=0) for _ in range(2000)]
    shown = []
    for below in (1, 2):
        values = [sample[0] / max(1, sample[below]) for sample in samples]
        whole = counts.sum(axis=0)
        low, high = np.percentile(values, [2.5, 97.5])
        shown.append(f"{whole[0] / max(1, whole[below]):.2f} [{low:.2f}, {high:.2f}]")
    return shown


def other_plans(data: Data, n_plans: int = 15, n_passages: int = 20) -> list[SearchableItem]:
    """Plans of other matters: encyclopaedia passages under the title of a climate plan."""
    with (data.root / "wiki" / "corpus.jsonl").open(encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    drawn = np.random.default_rng(0).choice(len(texts), n_plans * n_passages, replace=False).tolist()
    return [
        SearchableItem(
            item_id=f"other-{place}",
            content=texts[row][:600],
            metadata={
                "country": f"Land {place // n_passages}",
                "document": f"plan {place // n_passages}",
                "title": _TITLE.format(f"Land {place // n_passages}"),
            },
        )
        for place, row in enumerate(drawn)
    ]


def measured(data: Data) -> list[Cell]:
    """All cells."""
    cells = list(cells_of("other", other_plans(data), {}, data.work / "silence-other"))
    for name in SETS:
        loader = BeirLoader(str(data.root / "policy" / name))
        cells += cells_of(name, loader, gold_of(loader), data.work / f"silence-{name}")
    return cells


def main(arguments: list[str]) -> int:
    """Measure, and print the section."""
    if len(arguments) != 1:
        print("usage: python -m bench.policy.silence DATA   (DATA holds the folders policy and wiki)")
        return 2
    data = Data.of(arguments[0])
    cells = measured(data)
    steep = weight(cells)
    print(f"from all countries: a weight of {steep:.3f}, and silence up to {border(cells):.3f}")
    print(written(cells))
    print(judged_values(data))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
