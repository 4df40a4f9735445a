"""``python -m bench.agents DATA`` writes ``bench/AGENTS.md``: agents whose true figures are known, measured and replayed."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.agents.model import MOST, STEPS, K
from bench.agents.questions import ASKED, QUESTIONS, collection
from bench.agents.rules import MODEL, Decomposer, Log, RandomStopper, Repeater, RuleAgent, TitleFollower
from bench.common import Data
from bench.writing import page, shown, table
from nlp_retrieval import BeirLoader, Benchmarker, Bm25Retriever, Gold, Query, Searcher
from nlp_retrieval.agents import AgentSearcher, Trajectory, evaluate_trajectories, read_trajectories, replay
from nlp_retrieval.benchmarks.cost import Prices, price_per_1000_queries

_PAGE = Path(__file__).parent.parent / "AGENTS.md"
_SAMPLES, _SAMPLE = 100, 30
_PRICES: Any = {MODEL: {"input": 0.15, "output": 0.6}}
_OTHERS = {
    "no stemming, k1 1.5, b .75": Searcher([Bm25Retriever(k1=1.5, b=0.75, stemmer="none")]),
    "reranked by overlap, of 20": Searcher(["bm25"], reranker="overlap", depth=20),
    "words count once, k1 .01, b 0": Searcher([Bm25Retriever(k1=0.01, b=0.0)]),
}
_JUDGED = ("recall", "recall_by_search", "redundancy", "searched_on")
_BINS = ((0.0, 0.0), (0.0, 0.5), (0.5, 0.999), (0.999, 1.0))


def agents_of(titles: Mapping[str, str]) -> dict[str, RuleAgent]:
    """The agents by name; the two that stop by chance differ in their seed alone."""
    return {
        "follows titles": TitleFollower(titles),
        "decomposes": Decomposer(titles),
        "repeats itself": Repeater(titles),
        "stops by chance": RandomStopper(titles),
        "stops by chance, seed 1": RandomStopper(titles, seed=1),
    }


def plain_figures(log: Log, gold: set[str], limit: int) -> dict[str, float]:
    """The measures of one question from an agent's own log, by the plainest means."""
    seen: list[str] = []
    found_after: list[float] = []
    queries: list[str] = []
    repeated = again = results = 0
    last_gold, last_brought = 0, False
    for kind, what, ids, _ in log.steps:
        if kind == "open":
            continue
        new = [item_id for item_id in ids if item_id not in seen]
        repeated += what.casefold() in queries
        queries.append(what.casefold())
        again += len(ids) - len(new)
        results += len(ids)
        last_brought = any(item_id in gold for item_id in new)
        seen += new
        if last_brought:
            last_gold = len(queries)
        found_after.append(len(gold & set(seen)) / len(gold))
    opened = {what for kind, what, _, _ in log.steps if kind == "open"}
    held, cited = gold & set(seen), set(log.cited)
    padded = [*found_after, *[found_after[-1]] * limit][:limit]
    return {
        "recall": len(held) / len(gold),
        "perfect_recall": float(held == gold),
        "recall_by_search": sum(padded) / limit,
        "redundancy": again / results if results else 0.0,
        "repeated_queries": repeated / len(queries),
        "gold_unopened": len(held - opened) / len(gold),
        "gold_uncited": len(held - cited) / len(gold),
        "citation_precision": len(cited & gold) / len(cited) if cited else 0.0,
        "citation_recall": len(cited & gold) / len(gold),
        "cited_unseen": 0.0,
        "stopped_early": float(held != gold and last_brought),
        "searched_on": (len(queries) - last_gold) / len(queries) if held == gold else 0.0,
        "steps": float(len(log.steps)),
        "searches": float(len(queries)),
        "opened": float(len(opened)),
        "results": float(results),
        "tokens": float(sum(tokens for *_, tokens in log.steps)),
    }


@dataclass
class Ran:
    """All agents over one set of questions and one searcher."""

    queries: list[Query]
    gold: list[Gold]
    agents: dict[str, RuleAgent]
    trajectories: dict[str, list[Trajectory]]
    table: dict[str, list[str]]

    def evaluation(self, only: Sequence[int] | None = None) -> Any:
        """Measure all agents by the package, over some of the questions."""
        numbers = range(len(self.queries)) if only is None else only
        listed = [own[number] for own in self.trajectories.values() for number in numbers]
        families = {self.queries[number].query_id: self.queries[number].family for number in numbers}
        return evaluate_trajectories(listed, [self.gold[number] for number in numbers], families=families, limit=5)


def by_id(gold: Sequence[Gold], titles: Mapping[str, str]) -> list[Gold]:
    """Gold by item id; HoVer's is by title."""
    return [
        wanted
        if wanted.by == "item_id"
        else Gold(query_id=wanted.query_id, relevance={titles[title.lower()]: g for title, g in wanted.relevance.items()})
        for wanted in gold
    ]


def run(data: Data, name: str, titles: Mapping[str, str]) -> Ran:
    """Let the agents stand in a benchmark beside a single search."""
    queries, gold, index = collection(data, name)
    agents = agents_of(titles)
    searchers = {label: AgentSearcher(agent, Searcher(["bm25"]), label=label, steps=20) for label, agent in agents.items()}
    benchmark = Benchmarker(
        {"one search": Searcher(["bm25"]), **searchers},
        BeirLoader(str(data.corpus)),
        queries,
        gold,
        index_path=index,
        measures=["recall@5", "recall@20", "perfect_recall@20"],
        prices=_PRICES,
        latency_queries=20,
    )
    done = benchmark.run()
    rows = {}
    for result in done.report.configurations:
        cost, prices = result.cost, done.report.prices
        assert cost is not None
        assert isinstance(prices, Prices)
        model = cost.language_model
        tokens = 0 if model is None else model.query_tokens_in + model.query_tokens_out
        measures = [f"{result.measures[measure]:.3f}" for measure in ("recall@5", "recall@20", "perfect_recall@20")]
        rows[result.name] = [
            *measures,
            f"{tokens:,.0f}",
            f"{price_per_1000_queries(cost, prices):.2f}",
            f"{cost.latency_ms:.0f}",
        ]
    found = {label: searcher.trajectories(queries) for label, searcher in searchers.items()}
    return Ran(queries, by_id(gold, titles), agents, found, rows)


def largest_difference(ran: Ran) -> tuple[float, int]:
    """The largest difference between the package's measures and the plain ones, and how many values were compared."""
    evaluation, worst, compared = ran.evaluation(), 0.0, 0
    for label, agent in ran.agents.items():
        for number, (query, wanted) in enumerate(zip(ran.queries, ran.gold, strict=True)):
            plain = plain_figures(agent.logs[query.text], set(wanted.relevance), 5)
            for measure, value in plain.items():
                ours = (evaluation.per_query[label] | evaluation.counts[label])[measure][number]
                worst, compared = max(worst, abs(ours - value)), compared + 1
    return worst, compared


def figures_of(ran: Ran) -> dict[str, list[str]]:
    """The means of the agents with their intervals over families."""
    evaluation = ran.evaluation()
    families = evaluation.families
    return {label: [shown(evaluation.per_query[label][measure], families) for measure in _JUDGED] for label in ran.agents}


@dataclass
class Orders:
    """How the orders of pairs of agents come out in samples."""

    right: int = 0
    wrong: int = 0
    open: int = 0
    held: int = 0
    intervals: int = 0


def orders(ran: Ran, measure: str) -> tuple[Orders, Orders]:
    """Draw samples of families, compare the agents in each, and count against all questions.

    Returns:
        The pairs of agents that differ, and the pair of one agent under two seeds, whose difference is chance.
    """
    truth = {label: values[measure] for label, values in ran.evaluation().per_query.items()}
    families: dict[str, list[int]] = {}
    for number, query in enumerate(ran.queries):
        families.setdefault(query.family or query.query_id, []).append(number)
    different, same, draw = Orders(), Orders(), random.Random(0)
    for _ in range(_SAMPLES):
        chosen = sorted(number for own in draw.sample(list(families.values()), _SAMPLE) for number in own)
        evaluation = ran.evaluation(chosen)
        for label, own in evaluation.intervals.items():
            low, high = own[measure]
            different.held += low <= truth[label].mean() <= high
            different.intervals += 1
        for compared in evaluation.compare(measure):
            is_one = all(label.startswith("stops by chance") for label in (compared.system, compared.baseline))
            counted = same if is_one else different
            true = truth[compared.system].mean() - truth[compared.baseline].mean()
            if compared.p >= 0.05:
                counted.open += 1
            elif true * compared.difference > 0:
                counted.right += 1
            else:
                counted.wrong += 1
    return different, same


def replays(data: Data, ran: Ran, index: Path) -> tuple[dict[str, list[str]], list[tuple[float, float, float]]]:
    """Replay and live run of each agent under other searchers; by question the share of changed searches, and errors."""
    rows, points = {}, []
    gold = ran.gold
    for other, searcher in _OTHERS.items():
        searcher.index(BeirLoader(str(data.corpus)), index)
        for label in list(ran.agents)[:4]:
            recorded = ran.trajectories[label]
            replayed = replay(recorded, searcher, agent=label)
            live = AgentSearcher(ran.agents[label], searcher, label=label)
            live.search([query.text for query in ran.queries])
            lived = live.trajectories(ran.queries)
            values = [
                evaluate_trajectories(own, gold, limit=5).per_query[label]["recall"]
                for own in ([first_search(one) for one in lived], recorded, replayed.trajectories, lived)
            ]
            error = values[2] - values[3]
            rows[f"{other}; {label}"] = [
                f"{replayed.same:.2f}",
                f"{replayed.undisturbed:.2f}",
                *(f"{own.mean():.3f}" for own in values),
                f"{error.mean():+.3f}",
            ]
            if label not in ("follows titles", "stops by chance"):
                continue  # what the others ask does not depend on what they find
            for before, after, wrong in zip(recorded, replayed.trajectories, error.tolist(), strict=True):
                pairs = list(zip(before.searches, after.searches, strict=True))
                changed = sum(one.results != two.results for one, two in pairs) / len(pairs)
                points.append((changed, wrong, abs(wrong)))
    return rows, points


def first_search(trajectory: Trajectory) -> Trajectory:
    """The trajectory as far as its first search, whose results a replay has exactly."""
    return trajectory.model_copy(update={"steps": trajectory.steps[:1]})


def binned(points: Sequence[tuple[float, float, float]]) -> dict[str, list[str]]:
    """Errors of questions by the share of their searches that changed."""
    rows = {}
    for low, high in _BINS:
        own = [point for point in points if (point[0] == 0 if high == 0 else low < point[0] <= high)]
        name = "none" if high == 0 else "all" if low > 0.9 else "up to half" if high < 0.9 else "more than half"
        if own:
            mean, size = np.mean([point[1] for point in own]), np.mean([point[2] for point in own])
            rows[name] = [f"{len(own):,}", f"{mean:+.3f}", f"{size:.3f}", f"{np.mean([p[2] == 0 for p in own]):.2f}"]
    return rows


def model_row(data: Data) -> str:
    """What the language model did, if it was asked."""
    folder = data.work / "agents"
    if not (folder / "model.json").exists():
        return "The language model was not asked."
    about = json.loads((folder / "model.json").read_text())
    trajectories = read_trajectories(folder / "model.jsonl")
    queries, gold, index = collection(data, QUESTIONS[1])
    ids = {query.text: query for query in queries}
    trajectories = [own.model_copy(update={"question_id": ids[own.question].query_id}) for own in trajectories]
    asked = {own.question_id for own in trajectories}
    wanted = [own for own in gold if own.query_id in asked]
    means = evaluate_trajectories(trajectories, wanted, limit=STEPS).means("react_agent")
    single = Searcher(["bm25"]).open(index).search([own.question for own in trajectories], k=K)
    by_question = {own.query_id: set(own.relevance) for own in wanted}
    once = np.mean(
        [
            len(by_question[own.question_id] & {hit.item.item_id for hit in hits}) / len(by_question[own.question_id])
            for own, hits in zip(trajectories, single, strict=True)
        ]
    )
    right = sum(str(ids[own.question].metadata["answer"]).lower() in own.answer.lower() for own in trajectories)
    cut = sum(not own.complete for own in trajectories)
    errors = sum(bool(step.error) for own in trajectories for step in own.steps)
    return (
        f"{len(trajectories)} of the {MOST} questions were asked in {about['minutes']:.0f} minutes, on one thread of a machine "
        f"that did other work beside it: {means['tokens']:,.0f} tokens a question, {means['searches']:.1f} searches and "
        f"{means['opened']:.1f} openings of at most {STEPS} steps. The union of its searches (k {K}) held "
        f"{means['recall']:.2f} of the gold; one search for the question, of the same k, {once:.2f}. Answers that hold the "
        f"right one: {right}; steps that were errors: {errors}; trajectories cut off: {cut}. "
        f"{means['redundancy']:.2f} of its results it had seen before, {means['repeated_queries']:.2f} of its searches "
        "it had asked before. So few questions say that it runs and what it costs, and not how good it is."
    )


def main(root: str) -> None:
    """Measure, and write the page."""
    data, begin = Data.of(root), time.perf_counter()
    titles = {item.title.lower(): item.item_id for item in BeirLoader(str(data.corpus)).stream()}
    values: dict[str, object] = {"asked": ASKED, "samples": _SAMPLES, "sample": _SAMPLE}
    points: list[tuple[float, float, float]] = []
    compared, worst = 0, 0.0
    rows: dict[str, dict[str, list[str]]] = {"beside": {}, "figures": {}, "orders": {}, "replays": {}}
    for name in QUESTIONS:
        ran = run(data, name, titles)
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
        difference, count = largest_difference(ran)
        worst, compared = max(worst, difference), compared + count
        rows["beside"] |= {f"{name}, {label}": cells for label, cells in ran.table.items()}
        rows["figures"] |= {f"{name}, {label}": cells for label, cells in figures_of(ran).items()}
        both = zip(("different agents", "control: seeds of one agent"), orders(ran, "recall"), strict=True)
        for what, counted in both:
            n = counted.right + counted.wrong + counted.open
            cells = [f"{value / n:.3f}" for value in (counted.right, counted.wrong, counted.open)]
            held = f"{counted.held / counted.intervals:.3f}" if counted.intervals else ""
            rows["orders"][f"{name}, {what}"] = [f"{n:,}", *cells, held]
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
        own, more = replays(data, ran, data.work / "agents" / "index")
        rows["replays"] |= {f"{name}; {label}": cells for label, cells in own.items()}
        points += more
        print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
    values["model"] = model_row(data)
    values |= {"compared": f"{compared:,}", "worst": f"{worst:.1e}", "minutes": f"{(time.perf_counter() - begin) / 60:.0f}"}
    heads = ["", "recall@5", "recall@20", "perfect recall@20", "tokens", "price of 1,000", "median ms"]
    values["beside"] = table(heads, rows["beside"])
    values["figures"] = table(["", *(measure.replace("_", " ") for measure in _JUDGED)], rows["figures"])
    values["orders"] = table(["", "tests", "right", "wrong", "open", "intervals that hold the mean"], rows["orders"])
    heads = ["", "searches the same", "before the first change", "first search", "recorded", "replay", "live", "replay - live"]
    values["replays"] = table(heads, rows["replays"])
    heads = ["searches of a question that changed", "questions", "mean error", "mean absolute error", "exact"]
    values["bins"] = table(heads, binned(points))
    _PAGE.write_text(page((Path(__file__).parent / "page.md").read_text("utf-8"), **values), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
