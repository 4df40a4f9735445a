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
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue
from scipy.sparse import diags
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

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
        plain = PlainPassages(own)
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
    terms = CountVectorizer(analyzer=lambda text: set(stems.words(text)), min_df=3)
    matrix = terms.fit_transform([item.content for item in items])
    matrix = normalize(matrix @ diags(np.log(len(items) / matrix.sum(axis=0).A1)))
    countries = [str(item.metadata["country"]) for item in items]
    order = sorted(set(countries))
    fold = np.array([order.index(country) % 5 for country in countries])
    filed = {}
    for number in sorted({key[1] for key in gold}):
        there = set().union(*(members for key, members in gold.items() if key[1] == number))
        labels, found = np.array([item.item_id in there for item in items]), np.zeros(len(items))
        for one in range(5):
            others = fold != one
            model = LogisticRegression(C=500 / others.sum(), class_weight="balanced").fit(matrix[others], labels[others])
            found[~others] = model.predict_proba(matrix[~others])[:, 1]
        filed[number] = dict(zip((item.item_id for item in items), found.tolist(), strict=True))
    return filed


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
        about: dict[str, JsonValue] = {
            "country": f"Land {plan}",
            "document": f"plan {plan}",
            "title": f"Land {plan}: climate plan 2030",
        }
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
