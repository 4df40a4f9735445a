"""Is a question addressed at all? ``python -m bench.policy.silence DATA`` prints the section of ``bench/POLICY.md``.

Each country is asked the eight questions of the profile ``climate``: as it is, and with what answers a question withheld: the
gold passages of the question's number and their near-duplicates, and, since gold by filing is incomplete, also what a
classifier of terms, which learned from the gold of other countries, files there. Controls withhold as many passages at random,
or the gold of another question. Plans of other matters with a title of a climate plan are made of encyclopaedia passages.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, diags

from bench.common import Data, arguments
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
_NEAR, _FILED, _FEWEST = 0.5, 0.3, 4

Gold = Mapping[tuple[str, int], set[str]]


class Cell(NamedTuple):
    """A question to a country under one condition, and whether it is called addressed.

    A sentence that holds the value that is asked for answers; here any of the plan does, where a study looks at the best one.
    """

    collection: str
    country: str
    condition: str
    addressed: bool


def gold_of(loader: BeirLoader) -> Gold:
    """By country and question number, what answers one of the queries of that number."""
    gold: dict[tuple[str, int], set[str]] = defaultdict(set)
    queries = {query.query_id: query.metadata for query in loader.queries()}
    for one in loader.gold():
        about = queries[one.query_id]
        if about.get("kind", "question") == "question":
            key = str(about["country"]), int(str(about["question_number"]))
            gold[key] |= {name for name, grade in one.relevance.items() if grade > 0}
    return gold


def cells_of(name: str, items: list[SearchableItem], gold: Gold, folder: Path) -> Iterator[Cell]:
    """Yield the cells of a collection; without gold, those of plans of other matters, which are judged alone."""
    profile, draw = load_profile("climate"), np.random.default_rng(0)
    searcher = Searcher([Bm25Retriever()])
    searcher.index(items, folder, replace=True)
    study, finder = PolicyStudy(profile, searcher), Silence(profile, None)
    bags = {item.item_id: set(item.content.lower().split()) for item in items}
    filed, compared = _filed(items, gold) if gold else {}, study.compared(study.settings())
    for country in study.subjects:
        own = [item for item in items if item.metadata["country"] == country]
        plain = PlainPassages(own, profile)
        rest = [covered for other, covered in compared.items() if other != country]
        said = {item.item_id: finder.covered([item], plain) for item in own}
        known = list(said)
        for place, question in enumerate(profile.questions):
            wanted = gold.get((country, question.number), set())
            near = {one for one in known if any(_alike(bags[one], bags[other]) for other in wanted)}
            gone = wanted | near
            cleared = gone | {one for one in known if filed.get(question.number, {}).get(one, 0.0) >= _FILED}
            if gold and (not wanted or len(known) - len(cleared) < _FEWEST):
                continue
            withheld: dict[str, set[str]] = {AS_IT_IS if gold else OTHER: set()}
            if gold:
                shuffled, matched = (
                    set(draw.choice(known, len(some & set(known)), replace=False).tolist()) for some in (cleared, gone)
                )
                numbers = [other.number for other in profile.questions if other.number != question.number]
                others = [gold[country, number] - gone for number in numbers if gold.get((country, number))]
                withheld |= {CLEARED: cleared, SHUFFLED: shuffled, WITHHELD: gone, MATCHED: matched}
                withheld[ANOTHER] = others[draw.integers(len(others))] if others else set()
            held = {item.item_id for item in own if question.value and values_of(plain.split(item)[0], question.value)}
            for condition, without in withheld.items():
                more = beyond(np.concatenate([said[one] for one in known if one not in without]), rest)[place]
                yield Cell(name, country, condition, bool(held - without) or more > -INTERCEPT / WEIGHT)


def _alike(words: set[str], others: set[str]) -> bool:
    return len(words & others) >= _NEAR * len(words | others)


def _filed(items: list[SearchableItem], gold: Gold) -> dict[int, dict[str, float]]:
    """By question, how surely its terms file each passage there; learned from the countries of the other four folds."""
    stems = stems_of_language("english")
    bags = [set(stems.words(item.content)) for item in items]
    vocabulary = {word: place for place, word in enumerate(sorted(set().union(*bags)))}
    places = [(row, vocabulary[word]) for row, bag in enumerate(bags) for word in bag]
    matrix = csr_matrix((np.ones(len(places)), tuple(zip(*places, strict=True))), (len(items), len(vocabulary)))
    counts = np.asarray(matrix.sum(axis=0)).ravel()
    matrix = (matrix @ diags(np.where(counts >= 3, np.log(len(items) / counts), 0.0))).tocsr()
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    matrix = (diags(1 / np.maximum(lengths, 1e-9)) @ matrix).tocsr()
    countries = [str(item.metadata["country"]) for item in items]
    order = sorted(set(countries))
    fold = np.array([order.index(country) % 5 for country in countries])
    filed = {}
    for number in sorted({key[1] for key in gold}):
        there = set().union(*(members for key, members in gold.items() if key[1] == number))
        labels, found = np.array([item.item_id in there for item in items]), np.zeros(len(items))
        for one in range(5):
            weights = _fitted(matrix[fold != one], labels[fold != one], 1e-3 * (fold != one).sum())
            found[fold == one] = 1 / (1 + np.exp(-np.clip(matrix[fold == one] @ weights[:-1] + weights[-1], -50, 50)))
        filed[number] = dict(zip((item.item_id for item in items), found.tolist(), strict=True))
    return filed


def _fitted(columns: Any, labels: NDArray[np.bool_], penalty: float) -> NDArray[np.float64]:
    """Weights of a logistic regression with an intercept, in which both classes weigh the same."""
    signs = np.where(labels, 1.0, -1.0)
    weight = np.where(labels, 0.5 / max(1, labels.sum()), 0.5 / max(1, (~labels).sum())) * len(labels)

    def loss(beta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = signs * (columns @ beta[:-1] + beta[-1])
        slope = -weight * signs / (1 + np.exp(np.clip(margin, -50, 50)))
        whole = (weight * np.logaddexp(0, -margin)).sum() + penalty * (beta[:-1] ** 2).sum()
        return float(whole), np.append(columns.T @ slope + 2 * penalty * beta[:-1], slope.sum())

    return np.asarray(minimize(loss, np.zeros(columns.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 100}).x)


def written(cells: list[Cell]) -> str:
    """The tables: precision and recall of "not addressed" beside the controls; and how often it is said otherwise."""
    rows = {}
    of_all = [("", condition) for condition in (CLEARED, SHUFFLED, WITHHELD, MATCHED, ANOTHER)]
    for collection, condition in of_all + [(name, CLEARED) for name in SETS]:
        here = [cell for cell in cells if collection in {"", cell.collection} and cell.condition in {AS_IT_IS, condition}]
        countries = str(len({(cell.collection, cell.country) for cell in here}))
        name = ", ".join(filter(None, [condition, SETS.get(collection)]))
        rows[name] = [countries, str(len(here) // 2), *_figures(here)]
    silent = {}
    for condition, title in ((AS_IT_IS, "questions as they are"), (OTHER, "plans of other matters")):
        some = [not cell.addressed for cell in cells if cell.condition == condition]
        silent[title] = [str(len(some)), f"{np.mean(some):.3f}"]
    return (
        f"{table(['', 'countries', 'cells', 'precision', 'recall'], rows)}\n\n"
        f"{table(['called not addressed', 'cells', 'share'], silent)}"
    )


def _figures(cells: list[Cell]) -> list[str]:
    """Precision and recall of "not addressed", with intervals by resampling countries."""
    names = sorted({cell.country for cell in cells})
    counts = np.zeros((len(names), 3))
    for cell in cells:
        silent, said = cell.condition != AS_IT_IS, not cell.addressed
        counts[names.index(cell.country)] += (silent and said, said, silent)
    draw = np.random.default_rng(0)
    samples = [counts.sum(axis=0), *(counts[draw.integers(0, len(names), len(names))].sum(axis=0) for _ in range(2000))]
    shown = []
    for below in (1, 2):
        whole, *values = (sample[0] / max(1, sample[below]) for sample in samples)
        low, high = np.percentile(values, [2.5, 97.5])
        shown.append(f"{whole:.2f} [{low:.2f}, {high:.2f}]")
    return shown


def other_plans(data: Data, n_plans: int = 15, n_passages: int = 20) -> list[SearchableItem]:
    """Plans of other matters: encyclopaedia passages under the title of a climate plan."""
    texts = [json.loads(line)["text"] for line in data.corpus.read_text("utf-8").splitlines()]
    drawn = np.random.default_rng(0).choice(len(texts), n_plans * n_passages, replace=False).tolist()
    made = []
    for place, row in enumerate(drawn):
        plan = place // n_passages
        about = {"country": f"Land {plan}", "document": f"plan {plan}", "title": f"Land {plan}: climate plan 2030"}
        made.append(SearchableItem(item_id=f"other-{place}", content=texts[row][:600], metadata=about))
    return made


def measured(data: Data) -> list[Cell]:
    """All cells."""
    cells = list(cells_of("other", other_plans(data), {}, data.work / "silence-other"))
    for name in SETS:
        loader = BeirLoader(str(data.root / "policy" / name))
        cells += cells_of(name, list(loader.stream()), gold_of(loader), data.work / f"silence-{name}")
    return cells


if __name__ == "__main__":
    asked = Data.of(*arguments(__doc__, 1))
    print(written(measured(asked)), judged_values(asked), sep="\n\n")
