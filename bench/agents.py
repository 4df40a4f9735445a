"""``python -m bench.agents DATA`` writes ``bench/AGENTS.md``: agents by rules beside a single search, measured and replayed."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.common import Data
from bench.writing import page, shown, table, words
from nlp_retrieval import BeirLoader, Benchmarker, Bm25Retriever, Gold, HoverLoader, Query, Searcher
from nlp_retrieval.agents import AgentAnswer, AgentSearcher, AgentTools, evaluate_trajectories, replay
from nlp_retrieval.benchmarks.cost import price_per_1000_queries

_PAGE, _TEXT = Path(__file__).parent / "AGENTS.md", Path(__file__).parent / "agents_page.md"
_MODEL = "rule/agent"
"""Name of the model that the agents pay."""
_ASKED = 150
"""Questions of HotpotQA; none shares its source with a claim."""
_OTHERS = {
    "no stemming, k1 1.5, b .75": Searcher([Bm25Retriever(k1=1.5, b=0.75, stemmer="none")]),
    "reranked by overlap, of 20": Searcher(["bm25"], reranker="overlap", depth=20),
    "words count once, k1 .01, b 0": Searcher([Bm25Retriever(k1=0.01, b=0.0)]),
}
_COMPARED = ("recall@5", "recall@20", "perfect_recall@20")
_JUDGED = ("recall", "recall_by_search", "redundancy", "searched_on")
_WORD = re.compile(r"\w+")
_BREAKS = re.compile(r", | and | that | which | who | whose | where | when | in which | for which ", re.IGNORECASE)


class RuleAgent:
    """An agent without a model that pays for what it has read as if it had one: a token for four characters."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        self.titles = titles

    def __call__(self, question: str, tools: AgentTools) -> AgentAnswer:
        self._tools, self._read = tools, len(question)
        self._texts: dict[str, str] = {}
        self._opened: list[str] = []
        self.run(question)
        return AgentAnswer("done", self._opened[:3])

    def run(self, question: str) -> None:
        """Search and read."""
        raise NotImplementedError

    def search(self, query: str) -> list[str]:
        """Search, and return what was found."""
        self._tools.count_tokens(_MODEL, self._read // 4, 20)
        hits = self._tools.search(query, k=5)
        self._texts |= {hit.item.item_id: f"{hit.item.title}. {hit.item.content}" for hit in hits}
        self._read += sum(len(hit.item.title) for hit in hits)
        return [hit.item.item_id for hit in hits]

    def open_first(self, found: list[str]) -> str:
        """Read the first item that was not read; nothing if all were."""
        item_id = next((item_id for item_id in found if item_id not in self._opened), None)
        if item_id is None:
            return ""
        self._tools.count_tokens(_MODEL, self._read // 4, 20)
        self._tools.open(item_id)
        self._opened.append(item_id)
        self._read += len(self._texts[item_id])
        return self._texts[item_id]


class TitleFollower(RuleAgent):
    """Searches for the titles that the passages it reads mention, nearest to the question's words first."""

    def run(self, question: str) -> None:
        asked, wanted = {question.lower()}, set(_WORD.findall(question.lower()))
        mentioned: dict[str, int] = {}
        found = self.search(question)
        for _ in range(4):
            for title in self._titles_in(self.open_first(found)):
                mentioned.setdefault(title, len(wanted & set(_WORD.findall(title))))
            left = {title: shared for title, shared in mentioned.items() if title not in asked}
            if not left:
                return
            title = max(left, key=lambda title: left[title])
            asked.add(title)
            found = self.search(title)

    def _titles_in(self, text: str) -> list[str]:
        places = list(_WORD.finditer(text))
        titles = []
        for begin, word in enumerate(places):
            ends = (place.end() for place in reversed(places[begin : begin + 8])) if word[0][0].isupper() else ()
            titles += [title for end in ends if (title := text[word.start() : end].lower()) in self.titles][:1]
        return list(dict.fromkeys(titles))


class Decomposer(RuleAgent):
    """Searches for the question and each of its clauses, and reads the best of each."""

    def run(self, question: str) -> None:
        clauses = [clause.strip(" ?.") for clause in _BREAKS.split(question)]
        for query in [question, *(clause for clause in clauses if len(clause.split()) > 1 and clause != question)][:5]:
            self.open_first(self.search(query))


class Repeater(RuleAgent):
    """Searches for the question four times, in other cases, and reads once."""

    def run(self, question: str) -> None:
        for query in (question, question.upper(), question.lower(), question):
            found = self.search(query)
        self.open_first(found)


_AGENTS = {"follows titles": TitleFollower, "decomposes": Decomposer, "repeats itself": Repeater}


def _questions(data: Data, titles: Mapping[str, str]) -> dict[str, tuple[list[Query], list[Gold]]]:
    """HoVer's claims, and 2-hop questions of HotpotQA, with gold by item id."""
    claims = HoverLoader(data.claims)
    gold = [
        Gold(query_id=wanted.query_id, relevance={titles[title.lower()]: grade for title, grade in wanted.relevance.items()})
        for wanted in claims.gold()
    ]
    loader = BeirLoader(str(data.root / "wiki" / "hotpotqa"))
    sources = {claim.family for claim in claims.queries()}
    pairs = [
        (query, wanted)
        for query, wanted in zip(loader.queries(), loader.gold(), strict=True)
        if query.query_id not in sources and len(wanted.relevance) == 2 and query.metadata.get("type") == "bridge"
    ]
    drawn = random.Random(0).sample(pairs, _ASKED)
    return {
        "HoVer": (claims.queries(), gold),
        "HotpotQA": ([query for query, _ in drawn], [wanted for _, wanted in drawn]),
    }


def main(root: str) -> None:
    """Measure, and write the page."""
    data = Data.of(root)
    corpus, index = BeirLoader(str(data.corpus)), data.work / "agents" / "index"
    titles = {item.title.lower(): item.item_id for item in corpus.stream()}
    beside: dict[str, list[str]] = {}
    figures: dict[str, list[str]] = {}
    replays: dict[str, list[str]] = {}
    for name, (queries, gold) in _questions(data, titles).items():
        agents = {
            label: AgentSearcher(made(titles), Searcher(["bm25"]), label=label, steps=20) for label, made in _AGENTS.items()
        }
        prices: Any = {_MODEL: {"input": 0.15, "output": 0.6}}
        report = (
            Benchmarker(
                {"one search": Searcher(["bm25"]), **agents}, corpus, queries, gold, index_path=index,
                measures=list(_COMPARED), prices=prices, latency_queries=20,
            ).run().report
        )  # fmt: skip
        for result in report.configurations:
            cost, prices_of_run = result.cost, report.prices
            assert cost is not None, "the searchers of this benchmark were searched"
            assert prices_of_run is not None, "prices are given"
            model = cost.language_model
            beside[f"{name}, {result.name}"] = [
                *(f"{result.measures[measure]:.3f}" for measure in _COMPARED),
                f"{0 if model is None else model.query_tokens_in + model.query_tokens_out:,.0f}",
                f"{price_per_1000_queries(cost, prices_of_run):.2f}",
                f"{cost.latency_ms:.0f}",
            ]
        families = {query.query_id: query.family for query in queries}
        recorded = {label: agent.trajectories() for label, agent in agents.items()}
        evaluation = evaluate_trajectories(
            [each for own in recorded.values() for each in own], gold, families=families, limit=5
        )
        for label, measures in evaluation.per_query.items():
            figures[f"{name}, {label}"] = [shown(measures[measure], evaluation.families) for measure in _JUDGED]
        for other, searcher in _OTHERS.items():
            searcher.index(corpus, index)
            for label, before in recorded.items():
                replayed = replay(before, searcher)
                live = AgentSearcher(_AGENTS[label](titles), searcher, label=label)
                live.search(queries)
                lived = live.trajectories()
                first = [each.model_copy(update={"steps": each.steps[:1]}) for each in lived]
                recall = [
                    evaluate_trajectories(own, gold, limit=5).means(own[0].agent)["recall"]
                    for own in (first, before, replayed.trajectories, lived)
                ]
                cells = [f"{replayed.same:.2f}", f"{replayed.undisturbed:.2f}", *(f"{value:.3f}" for value in recall)]
                replays[f"{name}; {other}; {label}"] = [*cells, f"{recall[2] - recall[3]:+.3f}"]
        print(name, flush=True)
    heads = ["searches the same", "before the first change", "first search", "recorded", "replay", "live", "replay - live"]
    tables = {
        "beside": table(["", *map(words, _COMPARED), "tokens", "price of 1,000", "median ms"], beside),
        "figures": table(["", *map(words, _JUDGED)], figures),
        "replays": table(["", *heads], replays),
    }
    _PAGE.write_text(page(_TEXT.read_text("utf-8"), asked=_ASKED, **tables), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
