"""The link graph is an ordinary retriever: what it ranks is what loops and a solved equation say, whatever asks for it."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import Stemmer
from hashed_words import HashedWords, rows_of
from linked_pages import questions, wiki
from soaking import mostly_soaked

from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    LinkGraphRetriever,
    RetrievalResult,
    Searcher,
)
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.retrievers import SharedEntities, TitleMentions
from nlp_retrieval.retrievers.link_graph import retriever as module
from nlp_retrieval.retrievers.link_graph.walk import DEFAULT_WEIGHTS, local_pagerank

ITEMS = wiki(120)
QUERIES = questions(ITEMS, 24)
ENCODER = HashedWords(32)
BM25, DENSE = Bm25Retriever(), FaissRetriever(ENCODER)
LINKS = [TitleMentions(rarity=0.0), SharedEntities(weight=0.1)]


def link_graph(*seeds: object, **settings: object) -> LinkGraphRetriever:
    return LinkGraphRetriever(list(seeds) or [BM25, DENSE], **({"links": LINKS} | settings))  # type: ignore[arg-type]


VARIANTS = {
    "both seeds": link_graph(),
    "lexical alone": link_graph(BM25),
    "dense alone": link_graph(DENSE),
    "encoder without its seed": link_graph(BM25, encoder=ENCODER),
    "exact": link_graph(pagerank="exact"),
    "small pool": link_graph(pool=7),
    "few seeds": link_graph(depth=3, damping=0.9),
    "no walk": link_graph(damping=0.0),
    "other weights": link_graph(weights={"chain": -3.0, "chain_along": 2.0}),
    "of itself": link_graph(BM25, link_graph(DENSE)),
    "clauses": link_graph(clauses=True),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("link_graph") / "index"
    Searcher(list(VARIANTS.values())).index(ITEMS, path)
    return path


def found(retriever: LinkGraphRetriever, queries: list[str], path: Path, k: int = 500) -> list[list[RetrievalResult]]:
    return retriever.retrieve([[query] for query in queries], path, k)


# an oracle: sets, dicts, and the equation of the walk solved

_STEM = Stemmer.Stemmer("porter").stemWord
_STOP = set("a the and near".split())  # of those that the texts and questions here hold


def plain_terms(text: str) -> set[str]:
    return {_STEM(word) for word in re.findall("[a-z]+", text.lower())}


TERMS = [plain_terms(item.text) for item in ITEMS]


def title_terms(row: int) -> set[str]:
    return plain_terms(ITEMS[row].title)


def plain_steps(retriever: LinkGraphRetriever, path: Path) -> np.ndarray:
    """``[from, to]``, the probabilities of all steps."""
    steps = np.zeros((len(ITEMS), len(ITEMS)))
    items = open_generation(path).items
    for extractor in retriever.links:
        links = extractor.extract(items)
        for source, target, weight in zip(links.sources, links.targets, links.weights, strict=True):
            steps[source, target] += weight * extractor.along
            steps[target, source] += weight * extractor.against
    return steps / np.maximum(steps.sum(axis=1, keepdims=True), 1e-300)


def plain_pointing(retriever: LinkGraphRetriever, path: Path) -> np.ndarray:
    """``[from, to]``, whether a title of the one is mentioned in the other."""
    points = np.zeros((len(ITEMS), len(ITEMS)), bool)
    for extractor in retriever.links:
        if isinstance(extractor, TitleMentions):
            links = extractor.extract(open_generation(path).items)
            points[links.sources, links.targets] = True
    return points


def plain_pool(retriever: LinkGraphRetriever, steps: np.ndarray, query: str, path: Path) -> dict[int, dict[str, float]]:
    """By row the evidence, for all that the walk reaches."""
    n_items, damping = len(ITEMS), retriever.damping
    restart, fused = np.zeros(n_items), np.zeros(n_items)
    for seed in retriever.seeds.values():
        hits = found(seed, [query], path, retriever.depth)[0]  # type: ignore[arg-type]
        low, high = min(hit.score for hit in hits), max(hit.score for hit in hits)
        low = low if len(hits) == min(retriever.depth, n_items) else min(low, 0.0)  # a list that was not cut holds all matches
        for hit, row in zip(hits, rows_of(hits), strict=True):
            share = (hit.score - low) / (high - low) if high > low else 1.0
            restart[row] += max(share**4, 1e-7)
        for hit, row in zip(hits, rows_of(hits), strict=True):
            fused[row] += 61 / (61 + sum(other.score > hit.score for other in hits))
    titled = {row for row, item in enumerate(ITEMS) if item.title in query}
    restart[list(titled)] += retriever.title_weight
    restart /= restart.sum()
    walk = np.linalg.solve(np.eye(n_items) - damping * steps.T, (1 - damping) * restart)
    walk /= walk.sum()
    rows = [row for row in sorted(range(n_items), key=lambda row: (-round(walk[row], 12), row)) if walk[row] > 0]
    rows = rows[: retriever.pool]

    wanted = {term for term in plain_terms(query) - _STOP if any(term in text for text in TERMS)}
    having = {term: sum(term in text for text in TERMS) for term in wanted}
    information = {term: math.log1p((n_items - n + 0.5) / (n + 0.5)) for term, n in having.items()}
    whole = sum(information.values()) or 1.0

    def share_of(terms: set[str]) -> float:
        return sum(information[term] for term in terms & wanted) / whole

    dense = any(isinstance(part, FaissRetriever) for part in retriever.parts())
    similarity = ENCODER.encode_passages([item.text for item in ITEMS]) @ ENCODER.encode_queries([query])[0] * dense
    first = max(rows, key=lambda row: math.log(walk[row] + 1e-7) + similarity[row])

    def chain(row: int, others: list[int]) -> float:
        return max([share_of(TERMS[row] | TERMS[other]) for other in others] + [share_of(TERMS[row])])

    pointing = plain_pointing(retriever, path)
    linked = {row: [other for other in rows if steps[row, other] > 0 or steps[other, row] > 0] for row in rows}
    apart = sum(not any(pointing[row, other] or pointing[other, row] for other in rows) for row in rows) / len(rows)
    return {
        row: {
            "pagerank": math.log(walk[row] + 1e-7),
            "fused": fused[row] / len(retriever.seeds) * apart,
            "similarity": similarity[row],
            "titles": float(row in titled),
            "title_coverage": len(title_terms(row) & plain_terms(query)) / len(title_terms(row)),
            "named": min(1.0, 2 * len(title_terms(row) & plain_terms(ITEMS[row].content)) / len(title_terms(row))),
            "coverage": share_of(TERMS[row]),
            "chain": chain(row, linked[row]),
            "chain_along": chain(row, [other for other in rows if pointing[row, other] > 0]),
            "chain_against": chain(row, [other for other in rows if pointing[other, row] > 0]),
            "complement": share_of(TERMS[row] - TERMS[first]) * (1.0 if row in linked[first] else 1.0 - apart),
            "relation": plain_relation(query, row, titled & {*rows} or {first}, titled, pointing),
        }
        for row in rows
    }


def plain_relation(query: str, row: int, sources: set[int], titled: set[int], pointing: np.ndarray) -> float:
    """How near to a mention of a passage in one of the sources a word of the query stands that names nothing."""
    for named in titled:
        query = query.replace(ITEMS[named].title, "")
    asked, closest = plain_terms(query) - _STOP - {"which"}, 0.0
    for source in sources if row not in sources else ():
        for sentence in re.split(r"\. ", ITEMS[source].content) if pointing[source, row] else ():
            before, mention, after = sentence.partition(ITEMS[row].title)
            said = [_STEM(word) in asked - title_terms(source) for word in re.findall("[a-z]+", before.lower())][::-1]
            then = [_STEM(word) in asked - title_terms(source) for word in re.findall("[a-z]+", after.lower())][:3]
            values = [1 - place / 10 for place, says in enumerate(said[:9]) if says]
            values += [0.5 - place / 10 for place, says in enumerate(then) if says]
            closest = max([closest, *values]) if mention else closest
    return closest


@pytest.mark.parametrize(
    "name", mostly_soaked(["both seeds", "encoder without its seed", "lexical alone", "few seeds", "other weights"], 2)
)
def test_ranking_scores_and_signals_are_those_of_sets_and_a_solved_equation(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = VARIANTS[name]
    monkeypatch.setattr(module, "local_pagerank", partial(local_pagerank, epsilon=1e-13))  # next to nothing is left unfollowed
    steps = plain_steps(close, folder)
    for query, hits in zip(QUERIES, found(close, QUERIES, folder), strict=True):
        plain = plain_pool(close, steps, query, folder)
        scores = {row: sum(close.weights[kind] * value for kind, value in kinds.items()) for row, kinds in plain.items()}
        pooled = hits[: len(plain)]
        assert {*rows_of(pooled)} == {*scores}
        assert [hit.score for hit in pooled] == pytest.approx([scores[row] for row in rows_of(pooled)], abs=1e-4)
        assert [scores[row] for row in rows_of(pooled)] == pytest.approx(sorted(scores.values(), reverse=True), abs=1e-4)
        for hit, row in zip(pooled, rows_of(pooled), strict=True):
            told = {key.removeprefix("link_graph."): value for key, value in hit.signals.items()}
            wanted = plain[row] | {"pagerank": math.exp(plain[row]["pagerank"]) - 1e-7}
            assert {kind: told[kind] for kind in DEFAULT_WEIGHTS} == pytest.approx(wanted, abs=1e-5)


# what every retriever has to keep


def test_everything_that_a_walk_reaches_is_a_candidate_and_nothing_else(folder: Path) -> None:
    retriever = link_graph(BM25, depth=1, pagerank="exact", links=[TitleMentions(rarity=0.0), SharedEntities(weight=0.0)])
    ways = plain_steps(link_graph(links=[TitleMentions(rarity=0.0)]), folder) > 0
    for query, hits in zip(QUERIES, found(retriever, QUERIES, folder), strict=True):
        seeded = rows_of(found(BM25, [query], folder, 1)[0])  # type: ignore[arg-type]
        reached = {*seeded, *(row for row, item in enumerate(ITEMS) if item.title in query)}
        while more := {int(row) for row in np.flatnonzero(ways[sorted(reached)].any(axis=0))} - reached:
            reached |= more
        assert {*rows_of(hits)} == reached


# configurations


# what belongs to the index
