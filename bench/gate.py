"""``python -m bench.gate DATA`` writes ``bench/GATE.md``: false alarms, power, regressions and harmless changes."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.common import Data
from bench.writing import page, table
from nlp_retrieval import (
    BeirLoader,
    Bm25Retriever,
    FaissRetriever,
    HoverLoader,
    OverlapReranker,
    SearchableItem,
    Searcher,
    SentenceTransformerEncoder,
    WeightedSum,
    evaluate,
)
from nlp_retrieval.core import BaseLoader, BaseQueryLoader
from nlp_retrieval.encoders.models import find_model
from nlp_retrieval.gate.checking import Gate
from nlp_retrieval.gate.settings import GateSettings
from nlp_retrieval.gate.verdict import judge, looks_of

_PAGE, _TEXT = Path(__file__).parent / "GATE.md", Path(__file__).parent / "gate_page.md"
_COMMITS, _BRANCHES, _LOSSES, _MARGIN = 100, 100, 200, 0.02
_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
Values = NDArray[np.float64]
Pairs = dict[str, tuple[Values, Values, list[str | None]]]


def _sets(data: Data) -> dict[str, tuple[BaseQueryLoader, BaseLoader]]:
    wiki = BeirLoader(data.corpus)
    return {
        "SciFact": (BeirLoader(data.root / "scifact"), BeirLoader(data.root / "scifact")),
        "HotpotQA": (BeirLoader(data.root / "wiki" / "hotpotqa"), wiki),
        "HoVer": (HoverLoader(data.claims), wiki),
    }


def _indexed(data: Data, retriever: Bm25Retriever, corpus: BaseLoader) -> Searcher:
    searcher = Searcher([retriever])
    searcher.index(corpus, data.work / "gate" / Path(str(corpus.config["path"])).name)
    return searcher


def _pairs(data: Data) -> Pairs:
    """Return nDCG@10 of two configurations for each query, and the families, by set."""
    pairs = {}
    for name, (queries, corpus) in _sets(data).items():
        asked, values = queries.queries(), []
        for retriever in (Bm25Retriever(), Bm25Retriever(k1=1.5, b=0.75, stemmer="none")):
            results = _indexed(data, retriever, corpus).search(asked, 20)
            values.append(evaluate(results, queries.gold(), ["ndcg@10"]).per_query["ndcg@10"])
        pairs[name] = (values[0], values[1], [query.family for query in asked])
    return pairs


def _is_worse(before: Values, differences: Values, families: list[str | None], looks: int) -> bool:
    every = {"": np.ones(len(before), bool)}
    (each,) = judge({"m": before}, {"m": before + differences}, {"m": _MARGIN}, families, every, level=0.05, looks=looks)
    return each.verdict == "worse"


def _falls(differences: Values) -> bool:
    return bool(differences.any() and stats.ttest_1samp(differences, 0, alternative="less").pvalue < 0.05)


_RULES: dict[str, Callable[[Values], bool]] = {
    "fixed floor": lambda differences: bool(differences.mean() < -_MARGIN),
    "budget and test": lambda differences: bool(differences.mean() < -_MARGIN) and _falls(differences),
    "test alone": _falls,
}


def _mirrored(rng: np.random.Generator, differences: Values) -> Values:
    """A commit that moves some of the queries, in a drawn direction each."""
    moved = rng.random(len(differences)) < rng.uniform(0.1, 1)
    signs: Values = rng.choice([-1.0, 1.0], len(differences))
    return np.where(moved, differences * signs, 0.0)


def _centred(rng: np.random.Generator, differences: Values) -> Values:
    """A sample of the differences, whose mean in truth is 0."""
    drawn = rng.integers(len(differences), size=len(differences))
    centred: Values = np.clip(differences[drawn] - differences.mean(), -1, 1)
    return centred


def _alarms(pairs: Pairs) -> str:
    rows: dict[str, list[str]] = {}
    for name, (before, other, families) in pairs.items():
        for kind, commit in (("mirrored", _mirrored), ("centred", _centred)):
            rng = np.random.default_rng(1)
            ours = np.zeros(_BRANCHES, bool)
            theirs = {rule: np.zeros(_BRANCHES, bool) for rule in _RULES}
            for branch, _ in itertools.product(range(_BRANCHES), range(_COMMITS)):
                differences = commit(rng, other - before)
                for rule, fails in _RULES.items():
                    theirs[rule][branch] |= fails(differences)
                error = differences.std() / np.sqrt(len(differences))
                if not ours[branch] and error and differences.mean() / error < -2:  # any other is never called worse
                    ours[branch] = _is_worse(before, differences, families, _COMMITS)
            rows[f"{name}, {kind}"] = [f"{alarms.mean():.3f}" for alarms in (ours, *theirs.values())]
            print(name, kind, rows[f"{name}, {kind}"], flush=True)
    return table(["branches with a false alarm", "the gate", *_RULES], rows)


def _power(pairs: Pairs) -> str:
    rows: dict[str, list[str]] = {}
    for name, (before, other, families) in pairs.items():
        for looks in dict.fromkeys((1, looks_of(len(before)), _COMMITS)):
            rng = np.random.default_rng(2)
            losses = (np.clip(_centred(rng, other - before) - _MARGIN, -1, 1) for _ in range(_LOSSES))
            found = np.mean([_is_worse(before, loss, families, looks) for loss in losses])
            rows[f"{name}, {looks} looks"] = [f"{len(before):,}", f"{found:.3f}"]
            print(name, looks, found, flush=True)
    return table(["set", "queries", "called worse"], rows)


def _other_revision(folder: Path) -> str:
    """Return a copy of the model with weights that were changed a little."""
    import torch
    from sentence_transformers import SentenceTransformer

    if not folder.exists():
        model = SentenceTransformer(str(find_model(_MODEL, None).path))
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for weights in model.parameters():
                weights.add_(torch.randn(weights.shape, generator=generator) * weights.std() * 0.5)
        model.save(str(folder))
    return str(folder)


def _changes(data: Data) -> tuple[str, str, int]:
    """Regressions and harmless changes of SciFact: relevant passages, and every fourth of the others."""
    loader = BeirLoader(data.root / "scifact")
    gold = {item_id for each in loader.gold() for item_id in each.relevance}
    items = [item for number, item in enumerate(loader.stream()) if item.item_id in gold or number % 4 == 0]
    others = [item for number, item in enumerate(loader.stream()) if item.item_id not in gold and number % 20 == 1]
    strange = list(itertools.islice(BeirLoader(str(data.corpus)).stream(), len(items) // 20))

    def made(content: Callable[[SearchableItem], str], prefix: str = "", **metadata: str) -> list[SearchableItem]:
        return [
            SearchableItem(item_id=prefix + item.item_id, content=content(item), metadata={**item.metadata, **metadata})
            for item in items
        ]

    shuffled = [item.content for item in items]
    np.random.default_rng(3).shuffle(shuffled)
    texts = dict(zip((item.item_id for item in items), shuffled, strict=True))
    copies = [item for number in range(5) for item in made(lambda item: item.content, f"c{number}-")]

    def bm25(**given: object) -> Searcher:
        return Searcher([Bm25Retriever(**given)])  # type: ignore[arg-type]

    def dense(encoder: object = _MODEL) -> Searcher:
        return Searcher([FaissRetriever(encoder)])  # type: ignore[arg-type]

    def hybrid(bm25_share: float = 0.3, **given: object) -> Searcher:
        fusion = WeightedSum({"bm25": bm25_share, "faiss": 1 - bm25_share})
        return Searcher({"bm25": Bm25Retriever(), "faiss": FaissRetriever(_MODEL)}, fusion=fusion, **given)  # type: ignore[arg-type]

    def reranked(depth: int) -> Searcher:
        return hybrid(reranker=OverlapReranker(), depth=depth)

    wrong = SentenceTransformerEncoder(_MODEL, query_prompt="a recipe of a cookery book with butter, flour and sugar: ")
    regressions = {
        "a stemmer turned off": (bm25(), bm25(stemmer="none"), items, "settings"),
        "a stemmer of another language": (bm25(), bm25(language="de"), items, "settings"),
        "a wrong prefix of the encoder": (dense(), dense(wrong), items, "settings"),
        "a truncated corpus": (hybrid(), hybrid(), items[: len(items) * 3 // 4], "corpus"),
        "duplicated passages": (bm25(), bm25(), copies + items, "corpus"),
        "passages cut at 30 words": (bm25(), bm25(), made(lambda item: " ".join(item.content.split()[:30])), "corpus"),
        "a sixth more passages, which nobody judged": (hybrid(), hybrid(), [*items, *others], "corpus"),
        "fusion weights swapped": (hybrid(), hybrid(0.97), items, "settings"),
        "a reranker that sees 10": (reranked(100), reranked(10), items, "settings"),
        "shuffled ids": (dense(), dense(), made(lambda item: texts[item.item_id]), "corpus"),
        "an encoder of another revision": (
            dense(), dense(_other_revision(data.work / "gate" / "revision")), items, "models settings",
        ),
    }  # fmt: skip
    harmless = {
        "nothing": (bm25(), bm25(), items, ""),
        "passages in another order": (hybrid(), hybrid(), items[::-1], "corpus"),
        "a twentieth more passages, on other things": (hybrid(), hybrid(), [*items, *strange], "corpus"),
        "a key of metadata more": (hybrid(), hybrid(), made(lambda item: item.content, source="scifact"), "corpus"),
        "k1 0.9 -> 1": (bm25(), bm25(k1=1.0), items, "settings"),
        "fusion weights .3 -> .35": (hybrid(), hybrid(0.35), items, "settings"),
        "a reranker that sees 120, not 100": (reranked(100), reranked(120), items, "settings"),
        "batches of another size": (dense(), dense(SentenceTransformerEncoder(_MODEL, batch_size=8)), items, "settings"),
    }
    rows: dict[str, dict[str, list[str]]] = {"regressions": {}, "harmless": {}}
    work = data.work / "gate"
    gate = GateSettings(work / "base.jsonl", loader, {"ndcg@10": _MARGIN, "recall@20": _MARGIN})
    for kind, cases in (("regressions", regressions), ("harmless", harmless)):
        for name, (accepted, changed, corpus, expected) in cases.items():
            shutil.rmtree(work / "changed", ignore_errors=True)
            accepted.index(items, work / "accepted")
            changed.index(corpus, work / "changed")
            Gate(gate, accepted).update("accepted", accept_losses=True)
            report = Gate(gate, changed).check()
            first = report.changes[0] if report.changes else None
            fell = "; ".join(f"{each.before:.3f} -> {each.now:.3f}" for each in report.measures)
            right = first is None if not expected else first is not None and first.kind in expected
            said = "nothing" if first is None else f"{first.kind}: {first.detail[:70]}"
            cells = [fell, f"{report.verdict}: {'passes' if report.passes else 'fails'}"]
            rows[kind][name] = [*cells, f"{said} ({'right' if right else 'wrong'})"]
            print(name, rows[kind][name], flush=True)
    heads = ["", "nDCG@10; recall@20", "verdict", "reason named first"]
    return table(heads, rows["regressions"]), table(heads, rows["harmless"]), len(items)


def main(root: str) -> None:
    """Measure, and write the page."""
    data = Data.of(root)
    (data.work / "gate").mkdir(exist_ok=True)
    pairs = _pairs(data)
    means = [f"{name} ({len(a)} queries, nDCG@10 {a.mean():.3f} and {b.mean():.3f})" for name, (a, b, _) in pairs.items()]
    regressions, harmless, passages = _changes(data)
    values = {"pairs": "BM25 with two settings on " + ", ".join(means), "passages": f"{passages:,}"}
    values |= {"alarms": _alarms(pairs), "power": _power(pairs)}
    values |= {"regressions": regressions, "harmless": harmless}
    counts = {"branches": _BRANCHES, "margin": _MARGIN, "losses": _LOSSES}
    _PAGE.write_text(page(_TEXT.read_text("utf-8"), **counts, **values), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
