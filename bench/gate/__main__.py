"""``python -m bench.gate DATA WORK`` writes ``bench/GATE.md``: the gate by simulation on real figures, and planted regressions.

DATA is the folder with ``scifact`` and ``wiki``; WORK a folder for indexes and models, kept there.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.writing import page, table, write_page
from nlp_retrieval import (
    BeirLoader,
    Bm25Retriever,
    FaissRetriever,
    Gold,
    HoverLoader,
    OverlapReranker,
    Query,
    SearchableItem,
    Searcher,
    SentenceTransformerEncoder,
    WeightedSum,
    evaluate,
)
from nlp_retrieval.core import BaseLoader, BaseQueryLoader
from nlp_retrieval.encoders.models import find_model
from nlp_retrieval.gate.baseline import Baseline, read_baseline
from nlp_retrieval.gate.checking import Gate
from nlp_retrieval.gate.judged import ChangedPassage, Side, changed_passages, with_judged
from nlp_retrieval.gate.reasons import is_relevant
from nlp_retrieval.gate.settings import GateSettings
from nlp_retrieval.gate.verdict import MeasureVerdict, in_every_case, judge, looks_of

_PAGE = Path(__file__).parent.parent / "GATE.md"
_COMMITS, _BRANCHES, _LOSSES, _MARGIN = 100, 100, 200, 0.02
BESIDE = "Beside three packages"
"""Section that ``bench.gate.packages`` writes."""

_WRONG = "a recipe of a cookery book with butter, flour and sugar: "
_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
Values = NDArray[np.float64]


def _pairs(data: Path, work: Path) -> dict[str, tuple[Values, Values, list[str | None]]]:
    """Return nDCG@10 of two configurations for each query, and the families, by set."""
    pairs = {}
    for name, (queries, corpus, folder) in _sets(data).items():
        asked = queries.queries()
        values = []
        for retriever in _retrievers():
            searcher = Searcher([retriever])
            searcher.index(corpus, work / folder)
            results = searcher.search([query.text for query in asked], 20)
            for hits, query in zip(results, asked, strict=True):
                hits.query_id = query.query_id
            values.append(evaluate(results, queries.gold(), ["ndcg@10"]).per_query["ndcg@10"])
        pairs[name] = (values[0], values[1], [query.family for query in asked])
    return pairs


def _retrievers() -> tuple[Bm25Retriever, Bm25Retriever]:
    return Bm25Retriever(), Bm25Retriever(k1=1.5, b=0.75, stemmer="none")


def _sets(data: Path) -> dict[str, tuple[BaseQueryLoader, BaseLoader, str]]:
    return {
        "SciFact": (BeirLoader(data / "scifact"), BeirLoader(data / "scifact"), "scifact"),
        "HotpotQA": (BeirLoader(data / "wiki" / "hotpotqa"), BeirLoader(data / "wiki"), "wiki"),
        "HoVer": (HoverLoader(data / "wiki" / "hover" / "hover_dev_subset.json"), BeirLoader(data / "wiki"), "wiki"),
    }


def _calls_worse(before: Values, differences: Values, families: list[str | None], looks: int) -> bool:
    every = {"": np.ones(len(before), bool)}
    now = {"m": before + differences}
    (each,) = judge({"m": before}, now, {"m": _MARGIN}, families, every, level=0.05, looks=looks)
    return each.verdict == "worse"


def _may_be_worse(differences: Values) -> bool:
    """Return whether a commit could be called worse at all; a cheap bound, so that most commits need no randomisation."""
    error = differences.std() / np.sqrt(len(differences))
    return bool(error and differences.mean() / error < -2)


def _rules() -> dict[str, Callable[[Values], bool]]:
    def falls(differences: Values) -> bool:
        return bool(differences.any() and stats.ttest_1samp(differences, 0, alternative="less").pvalue < 0.05)

    return {
        "fixed floor": lambda differences: bool(differences.mean() < -_MARGIN),
        "budget and test": lambda differences: bool(differences.mean() < -_MARGIN) and falls(differences),
        "test alone": falls,
    }


def _mirrored(rng: np.random.Generator, differences: Values) -> Values:
    """A commit that moves some of the queries, in a drawn direction each."""
    moved = rng.random(len(differences)) < rng.uniform(0.1, 1)
    return np.where(moved, differences * rng.choice([-1.0, 1.0], len(differences)), 0.0)


def _centred(rng: np.random.Generator, differences: Values) -> Values:
    """A sample of the differences, whose mean in truth is 0."""
    drawn = rng.integers(len(differences), size=len(differences))
    return np.clip(differences[drawn] - differences.mean(), -1, 1)


def _alarms(pairs: dict[str, tuple[Values, Values, list[str | None]]]) -> str:
    rows: dict[str, list[str]] = {}
    for name, (before, other, families) in pairs.items():
        for kind, commit in (("mirrored", _mirrored), ("centred", _centred)):
            rng = np.random.default_rng(1)
            ours = np.zeros(_BRANCHES, bool)
            theirs = {rule: np.zeros(_BRANCHES, bool) for rule in _rules()}
            for branch in range(_BRANCHES):
                for _ in range(_COMMITS):
                    differences = commit(rng, other - before)
                    for rule, fails in _rules().items():
                        theirs[rule][branch] |= fails(differences)
                    if not ours[branch] and _may_be_worse(differences):
                        ours[branch] = _calls_worse(before, differences, families, _COMMITS)
            rows[f"{name}, {kind}"] = [f"{ours.mean():.3f}", *(f"{alarms.mean():.3f}" for alarms in theirs.values())]
            print(name, kind, rows[f"{name}, {kind}"], flush=True)
    return table(["branches with a false alarm", "the gate", *_rules()], rows)


def _power(pairs: dict[str, tuple[Values, Values, list[str | None]]]) -> str:
    rows: dict[str, list[str]] = {}
    for name, (before, other, families) in pairs.items():
        for looks in dict.fromkeys((1, looks_of(len(before)), _COMMITS)):
            rng = np.random.default_rng(2)
            losses = (np.clip(_centred(rng, other - before) - _MARGIN, -1, 1) for _ in range(_LOSSES))
            found = np.mean([_calls_worse(before, loss, families, looks) for loss in losses])
            rows[f"{name}, {looks} looks"] = [f"{len(before):,}", f"{found:.3f}"]
            print(name, looks, rows[f"{name}, {looks} looks"], flush=True)
    return table(["set", "queries", "called worse"], rows)


def _judged(data: Path, work: Path) -> str:
    """Judge what changed with gold as the judge, a twentieth at a time in a random order, until there is a verdict."""
    rows: dict[str, list[str]] = {}
    changes = {"k1 0.9 -> 1.2": Bm25Retriever(k1=1.2), "other settings, no stemmer": _retrievers()[1]}
    for (name, (queries, corpus, folder)), (change, retriever) in itertools.product(_sets(data).items(), changes.items()):
        asked, gold = queries.queries(), {each.query_id: each for each in queries.gold()}
        sides = []
        for number, each_retriever in enumerate((Bm25Retriever(), retriever)):
            searcher = Searcher([each_retriever])
            searcher.index(corpus, work / folder)
            gate = GateSettings(work / f"side{number}.jsonl", queries, {"precision@10": _MARGIN}, k=10)
            Gate(gate, searcher).update("accepted", accept_losses=True)
            sides.append(read_baseline(gate.baseline))
        before, now = sides
        items = {**now.items, **before.items}
        texts = {item_id: item.digest for item_id, item in items.items()}
        open_ = changed_passages(work / "nothing is judged", asked, before, now, [10], texts, {})
        said = [
            replace(each, relevant=is_relevant(each.key[1], items[each.key[1]].title, gold[each.query_id])) for each in open_
        ]
        order = np.random.default_rng(4).permutation(len(asked)).tolist()
        place = {asked[number].query_id: position for position, number in enumerate(order)}
        said.sort(key=lambda each: place[each.query_id])
        for many in (len(said) * step // 20 for step in range(21)):
            verdict = _verdict_of_change(asked, before, now, said, many)
            if verdict != "cannot tell":
                break
        both = sum(len({*before.queries[each.query_id].hits, *now.queries[each.query_id].hits}) for each in asked)
        every = _verdict_of_change(asked, before, now, said, len(said))
        rows[f"{name}, {change}"] = [f"{both:,}", f"{len(said):,}", f"{many:,}", verdict, every]
        print(name, change, rows[f"{name}, {change}"], flush=True)
    heads = ["set and change", "passages of both", "that differ", "judged at the verdict", "verdict", "when all are judged"]
    return table(heads, rows)


def _verdict_of_change(asked: list[Query], before: Baseline, now: Baseline, said: list[ChangedPassage], many: int) -> str:
    passages = [each if number < many else replace(each, relevant=None) for number, each in enumerate(said)]
    every, families = {"": np.ones(len(asked), bool)}, [query.family for query in asked]

    def verdicts(also: Side | None) -> list[MeasureVerdict]:
        gold = with_judged({query.query_id: Gold(query_id=query.query_id, relevance={}) for query in asked}, passages, 1, also)
        old, new = (
            np.array([sum(hit in gold[each].relevance for hit in side.queries[each].hits) / 10 for each in gold])
            for side in (before, now)
        )
        return judge({"p": old}, {"p": new}, {"p": _MARGIN}, families, every, level=0.05, looks=_COMMITS)

    (verdict,) = in_every_case(*map(verdicts, (None, "baseline", "now")))
    return verdict.verdict


class _Given(BaseLoader):
    """Items that are at hand."""

    name = "given"

    def __init__(self, items: list[SearchableItem]) -> None:
        self.items = items

    @property
    def config(self) -> dict[str, object]:
        return {"name": self.name}

    def stream(self):
        return iter(self.items)


def _some_passages(data: Path) -> list[SearchableItem]:
    """Relevant passages, and every fourth of the others."""
    loader = BeirLoader(data / "scifact")
    gold = {item_id for each in loader.gold() for item_id in each.relevance}
    return [item for number, item in enumerate(loader.stream()) if item.item_id in gold or number % 4 == 0]


def _other_revision(work: Path) -> Path:
    """Return a copy of the model with weights that were changed a little."""
    import torch
    from sentence_transformers import SentenceTransformer

    folder = work / "revision"
    if not folder.exists():
        model = SentenceTransformer(str(find_model(_MODEL, None).path))
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for weights in model.parameters():
                weights.add_(torch.randn(weights.shape, generator=generator) * weights.std() * 0.5)
        model.save(str(folder))
    return folder


def _regressions(data: Path, work: Path) -> tuple[str, int, int, int]:
    items = _some_passages(data)
    shuffled = [item.content for item in items]
    np.random.default_rng(3).shuffle(shuffled)
    copies = [
        SearchableItem(item_id=f"c{n}-{i.item_id}", content=i.content, metadata=i.metadata) for n in range(5) for i in items
    ]
    dense = FaissRetriever(_MODEL)
    fusion = {"bm25": 0.3, "faiss": 0.7}

    def hybrid(**settings: object) -> Searcher:
        return Searcher(
            {"bm25": Bm25Retriever(), "faiss": dense},
            **({"fusion": WeightedSum(fusion)} | settings),  # type: ignore[arg-type]
        )

    cases: list[tuple[str, Searcher, Searcher, list[SearchableItem], str]] = [
        ("a stemmer turned off", Searcher([Bm25Retriever()]), Searcher([Bm25Retriever(stemmer="none")]), items, "settings"),
        (
            "a wrong prefix of the encoder", Searcher([dense]),
            Searcher([FaissRetriever(SentenceTransformerEncoder(_MODEL, query_prompt=_WRONG))]), items,
            "settings",
        ),
        ("a truncated corpus", hybrid(), hybrid(), items[: len(items) * 3 // 4], "corpus"),
        (
            "duplicated passages", Searcher([Bm25Retriever()]), Searcher([Bm25Retriever()]),
            copies + items, "corpus",
        ),
        ("fusion weights swapped", hybrid(), hybrid(fusion=WeightedSum({"bm25": 0.97, "faiss": 0.03})), items, "settings"),
        (
            "a reranker that sees 10", hybrid(reranker=OverlapReranker(), depth=100),
            hybrid(reranker=OverlapReranker(), depth=10), items, "settings",
        ),
        (
            "shuffled ids", Searcher([dense]), Searcher([dense]),
            [SearchableItem(item_id=i.item_id, content=text) for i, text in zip(items, shuffled, strict=True)], "corpus",
        ),
        ("an encoder of another revision", Searcher([dense]), Searcher([FaissRetriever(str(_other_revision(work)))]), items,
         "models or settings"),
    ]  # fmt: skip
    rows: dict[str, list[str]] = {}
    flicker, queries = 0, BeirLoader(data / "scifact")
    for number, (name, accepted, changed, corpus, expected) in enumerate(cases):
        folder = work / f"case{number}"
        shutil.rmtree(folder, ignore_errors=True)
        gate = GateSettings(folder / "base.jsonl", queries, {"ndcg@10": _MARGIN, "recall@20": _MARGIN})
        accepted.index(_Given(items), work / "accepted")
        changed.index(_Given(corpus), folder / "index")
        Gate(gate, accepted).update("accepted", accept_losses=True)
        report, again = Gate(gate, changed).check(), Gate(gate, changed).check()
        flicker += report.verdict != again.verdict or report.measures != again.measures
        first = report.changes[0] if report.changes else None
        fell = "; ".join(f"{each.before:.3f} -> {each.now:.3f}" for each in report.measures)
        right = first is not None and first.kind in expected
        detail = "" if first is None else f"{first.kind}: {first.detail[:90]}"
        rows[name] = [fell, str(report.verdict), f"{detail} ({'right' if right else 'wrong'})"]
        print(name, rows[name], flush=True)
    heads = ["planted", "nDCG@10; recall@20", "verdict", "first"]
    return table(heads, rows), flicker, len(queries.queries()), len(items)


def main(arguments: list[str]) -> int:
    """Measure, and write the page."""
    if len(arguments) != 2:
        print("usage: python -m bench.gate DATA WORK")
        return 2
    data, work = map(Path, arguments)
    work.mkdir(parents=True, exist_ok=True)
    pairs = _pairs(data, work)
    means = [f"{name} ({len(a)} queries, nDCG@10 {a.mean():.3f} and {b.mean():.3f})" for name, (a, b, _) in pairs.items()]
    regressions, flicker, planted, passages = _regressions(data, work)
    write_page(
        _PAGE,
        page(
            (Path(__file__).parent / "page.md").read_text("utf-8"),
            pairs="BM25 with two settings on " + ", ".join(means),
            branches=_BRANCHES, margin=_MARGIN, losses=_LOSSES, alarms=_alarms(pairs), power=_power(pairs),
            judged=_judged(data, work), regressions=regressions, flicker=flicker, planted=planted, passages=f"{passages:,}",
        ),
        [BESIDE],
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
