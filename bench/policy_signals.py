"""What signals of policy questions are worth, by folds: ``python -m bench.policy_signals DATA`` writes ``POLICY_SIGNALS.md``.

DATA holds the folder ``policy``; the invented plans of ``nlp-retrieval policy demo`` come with the package. Each question is
asked about one country, whose passages are all scored. Whatever is chosen is judged on countries that had no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.common import Data, arguments
from bench.policy.searchers import Parts
from bench.sweeps import Figures, Values
from bench.writing import page, table
from nlp_retrieval import BeirLoader, Query
from nlp_retrieval.evaluation import RetrievalEvaluator
from nlp_retrieval.evaluation.gold import gold_of
from nlp_retrieval.rerankers import load_profile
from nlp_retrieval.rerankers.multi_signal.features import SIGNALS
from nlp_retrieval.rerankers.multi_signal.tuning import _evaluated, _grid, _pools
from nlp_retrieval.systems.policy.demo.writing import write_collection

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
SETS = {
    "cat": ("Climate Action Tracker", "recall@10"),
    "ndc": ("National contributions, long answers", "recall@3"),
    "ndc_actions": ("National contributions, single measures", "recall@3"),
    "demo": ("Invented plans", "recall@10"),
}
ALONE, DESCRIBED, OWN, FOLDED, AMONG = (
    "sentence vectors alone", "as described", "the profile's", "fitted by folds", "best of these by folds",
)  # fmt: skip
FOLDS = 5
MEASURE = "ndcg@10"


def candidates() -> dict[str, dict[str, float]]:
    """Weights by the names of their rows: the defaults that could be, and the profile's without each signal."""

    def weights(*shares: float) -> dict[str, float]:
        return dict(zip(SIGNALS, shares, strict=True))

    own = load_profile("climate").weights.as_dict()
    fixed = {ALONE: weights(1, 0, 0, 0), DESCRIBED: weights(0.25, 0.2, 0.3, 0.25), OWN: own}
    return fixed | {f"the profile's without {signal.replace('_', ' ')}": own | {signal: 0.0} for signal in SIGNALS}


def by_folds(tried: Sequence[Values], families: Sequence[str]) -> tuple[Values, list[int]]:
    """Each country by the weights that are best on the others; and which were chosen, by fold."""
    fold = np.array([sorted(set(families)).index(family) % FOLDS for family in families])
    columns = np.stack([one[MEASURE] for one in tried])
    chosen = [int(columns[:, fold != number].mean(axis=1).argmax()) for number in range(FOLDS)]
    picked = np.array(chosen)[fold], np.arange(len(fold))
    return {key: np.stack([one[key] for one in tried])[picked] for key in tried[0]}, chosen


def measured(data: Data, name: str, folder: Path) -> tuple[str, str]:
    """The table of a collection, and which of the candidates its folds chose."""
    measure, profile = SETS[name][1], load_profile("climate")
    loader = BeirLoader(str(folder if name == "demo" else data.root / "policy" / name))
    queries = [query for query in loader.queries() if query.metadata.get("kind", "question") == "question"]
    parts = Parts.of(loader, data.work / f"policy-words-{name}", MODEL)
    searcher = parts.scored()
    searcher.index(loader, data.work / f"policy-{name}")
    judged = gold_of(queries, [one for one in loader.gold() if one.query_id in {query.query_id for query in queries}])
    evaluator = RetrievalEvaluator(judged, searcher.opened.items.ids(), None, (3, 10))

    def longer(query: Query) -> Query:
        keywords = profile.question(int(str(query.metadata["question_number"]))).keywords
        return query.model_copy(update={"text": " ".join([query.text, *keywords])})

    where = {"country": "country"}
    plain = _pools(searcher, searcher.reranker, queries, where)  # type: ignore[arg-type]
    asked_long = _pools(searcher, searcher.reranker, list(map(longer, queries)), where)  # type: ignore[arg-type]
    with_keywords = [
        one._replace(columns=one.columns | {"transformer": other.columns["transformer"]})
        for one, other in zip(plain, asked_long, strict=True)
    ]
    families: list[str] = [str(query.metadata["country"]) for query in queries]
    tried = {row: _evaluated(evaluator, plain, weights).per_query for row, weights in candidates().items()}
    grid = [_evaluated(evaluator, plain, weights).per_query for weights in _grid(SIGNALS, candidates()[OWN])]
    among, chosen = by_folds(list(tried.values()), families)
    rows = tried | {AMONG: among, FOLDED: by_folds(grid, families)[0]}
    if name == "demo":  # whose questions are those of the profile
        for row in (ALONE, DESCRIBED, OWN):
            rows[f"{row}, with keywords"] = _evaluated(evaluator, with_keywords, candidates()[row]).per_query
    found = Figures(rows, list(families), list(families))
    cells = {
        row: [
            *(f"{found.mean(row, key):.3f}" for key in (measure, MEASURE)),
            *(found.gain(row, one, MEASURE) for one in (ALONE, OWN)),
        ]
        for row in rows
    }
    picked = ", ".join(f"{list(tried)[one]} ({chosen.count(one)})" for one in sorted(set(chosen)))
    return table(["weights", measure, MEASURE, f"{MEASURE} over {ALONE}", f"over {OWN}"], cells), picked


def main(data: Data) -> None:
    """Measure, and write the page."""
    tables = {}
    with TemporaryDirectory() as folder:
        for name in SETS:
            tables[name], tables[f"{name}_chosen"] = measured(data, name, write_collection(Path(folder)))
            print(SETS[name][0], tables[name], tables[f"{name}_chosen"], sep="\n", flush=True)
    parts = [
        f"## {title}\n\n{tables[name]}\n\nThe folds chose: {tables[f'{name}_chosen']}." for name, (title, _) in SETS.items()
    ]
    text = page((Path(__file__).parent / "policy_signals_page.md").read_text("utf-8"), tables="\n\n".join(parts))
    (Path(__file__).parent / "POLICY_SIGNALS.md").write_text(text, "utf-8")


if __name__ == "__main__":
    main(Data.of(arguments(__doc__, 1)[0]))
