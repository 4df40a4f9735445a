"""HippoRAG 2: retrieval by a walk over a graph of passages' statements, from the triples near the query.

Gutierrez et al., 2025, From RAG to Memory: Non-Parametric Continual Learning for Large Language Models
(https://arxiv.org/abs/2502.14802). Nodes are the entities of all triples and the passages; the walk restarts at the entities
of the triples nearest to the query and, much less, at all passages by their similarity to it. The triples come from a source of
knowledge at indexing, and the needed ones are stored in the index.

Every passage gets a score, with or without knowledge: unreached passages follow reached ones, in the order of their similarity
to the query.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from nlp_retrieval import Explanation, FaissRetriever, LanguageModel
from nlp_retrieval.core import (
    READS_FILE,
    BaseRetriever,
    Config,
    Hits,
    ItemTable,
    Mask,
    MergeRule,
    Rows,
    Scores,
    SegmentFolder,
    may_set,
    reads_model,
    stage,
    top_k,
)
from nlp_retrieval.encoders import BaseEncoder, Vectors, as_encoder
from nlp_retrieval.errors import EngineError
from nlp_retrieval.retrievers import Restarts, WeightedGraph, pagerank
from nlp_retrieval.systems.hipporag.graph import KnowledgeGraph, build_files, extend_files, join_files, open_knowledge
from nlp_retrieval.systems.hipporag.knowledge import phrase_of
from nlp_retrieval.systems.hipporag.sources import digest_of, joining_source_of, reads_knowledge, source_of
from nlp_retrieval.text import entities_by_rules, fenced


@dataclass(frozen=True)
class Linked:
    """Entities that the walk of a query starts from."""

    entities: Rows  # their numbers, ascending
    weights: Scores  # of starts at each, above 0; relative to a passage's similarity of 0 to 1
    triples: Rows  # the triples that led to them, best first; may be empty
    similarities: Scores  # inner products of triples (or, without triples, of entities) and query


def linked_by_triples(
    knowledge: KnowledgeGraph, vectors: Vectors, nearest: list[tuple[Rows, Scores]], kept: list[Rows], entity_k: int
) -> list[Linked]:
    """Link queries to the subjects and objects of the kept ones among the triples nearest to them.

    A triple's weight is its similarity, min-max normalised over all triples of the index; an entity's is the mean weight of
    its triples, divided by the number of passages that name it; the best entities are kept.
    """
    if not len(knowledge.triples.places):
        return [Linked(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), np.zeros(0))] * len(vectors)
    linked = []
    for (triples, scores), lowest, stay in zip(nearest, knowledge.triples.farthest(vectors), kept, strict=True):
        weights = _scaled(scores, lowest)
        stays = np.isin(triples, stay)
        linked.append(_from_triples(knowledge, triples[stays], weights[stays], scores[stays], entity_k))
    return linked


def linked_by_names(
    knowledge: KnowledgeGraph,
    queries: Sequence[str],
    names: Sequence[Sequence[str]],
    encode: Callable[[list[str]], Vectors],
    k: int,
) -> list[Linked]:
    """Link queries to the entities nearest to each of their names, or to the query if it has none."""
    names = [of_query or [query] for of_query, query in zip(names, queries, strict=True)]
    distinct = list(dict.fromkeys(name for of_query in names for name in of_query))
    nearest = dict(zip(distinct, knowledge.entities.nearest(encode(distinct), k), strict=True))
    linked = []
    for of_query in names:
        entities, which = np.unique(np.concatenate([nearest[name][0] for name in of_query]), return_inverse=True)
        highest = np.full(len(entities), -np.inf)
        np.maximum.at(highest, which, np.concatenate([nearest[name][1] for name in of_query]))
        near = highest > 0
        linked.append(Linked(entities[near], highest[near], np.zeros(0, np.int64), highest[near]))
    return linked


def _from_triples(knowledge: KnowledgeGraph, triples: Rows, weights: Scores, scores: Scores, entity_k: int) -> Linked:
    ends, owner = np.unique(knowledge.ends[triples], return_inverse=True)
    occurrences = np.bincount(owner.ravel(), minlength=len(ends))
    sums = np.bincount(owner.ravel(), np.repeat(weights, 2), len(ends))
    means = sums / np.maximum(occurrences, 1) / knowledge.passages_of_entity[ends]
    best = np.sort(np.lexsort((ends, -means))[:entity_k])
    positive = best[means[best] > 0]
    return Linked(ends[positive], means[positive], triples, scores)


def _scaled(scores: Scores, lowest: float) -> Scores:
    """Return scores scaled from 0, the lowest of all, to 1, the first of these; 1 if all are equal."""
    span = float(scores[0]) - lowest
    return (scores - lowest) / span if span > 0 else np.ones(len(scores))


_FLOOR = 0.05
"""Lowest factor in the product of three stages, for the least similar or an unrelated passage, so that no product is 0."""


@dataclass(frozen=True)
class DenseScores:
    """All passages by their similarity to a query."""

    rows: Rows
    similarities: Scores

    @property
    def scaled(self) -> Scores:
        """Return similarities scaled from 0, the lowest, to 1, the highest; 1 if all are equal."""
        return _scaled(self.similarities, self.similarities[-1]) if len(self.rows) else self.similarities

    def by_row(self, values: Scores, n_rows: int) -> Scores:
        """Return values by row, ``[n_rows]``; 0 for deleted rows."""
        column = np.zeros(n_rows)
        column[self.rows] = values
        return column


@dataclass(frozen=True)
class Ranked:
    """Ranking for one query, by row; values of deleted rows have no meaning."""

    scores: Scores  # higher is better
    ranks: Scores  # share of the walk at each passage (without passage nodes: at the entities it names)
    seeds: Scores  # share of its restarts
    entities: Scores  # share of the walk at each entity; empty if there was no walk


def restarts_of(linked: Linked, dense: DenseScores, passage_weight: float, n_rows: int) -> Restarts:
    """Return the restarts of a query's walk: its entities, and all passages by similarity times a weight."""
    rows, weights = linked.entities + n_rows, linked.weights
    if passage_weight > 0:
        order = np.argsort(dense.rows)
        rows, weights = np.r_[dense.rows[order], rows], np.r_[passage_weight * dense.scaled[order], weights]
    return Restarts(rows, weights)


def ranked_by_walk(knowledge: KnowledgeGraph, dense: DenseScores, restarts: Restarts, nodes: Scores, passages: bool) -> Ranked:
    """Rank passages by the walk, and those it does not reach by similarity."""
    n_rows = knowledge.n_rows
    ranks = nodes[:n_rows] if passages else relevance_of(knowledge, nodes[n_rows:])
    scaled = dense.by_row(dense.scaled, n_rows)
    # as float32: values that differ only by rounding tie, and are ordered by row
    scores = np.where(ranks > 0, ranks.astype(np.float32).astype(np.float64), scaled - 2.0)
    return Ranked(scores, ranks, _shares(restarts, n_rows), nodes[n_rows:])


def ranked_by_similarity(knowledge: KnowledgeGraph, dense: DenseScores) -> Ranked:
    """Rank passages if no entity was linked: by similarity alone, as if the walk always restarted."""
    scaled = dense.scaled
    shares = dense.by_row(scaled / (scaled.sum() or 1.0), knowledge.n_rows)
    scores = np.where(shares > 0, shares, -2.0)
    return Ranked(scores, shares, shares, np.zeros(0))


def ranked_by_product(
    knowledge: KnowledgeGraph, dense: DenseScores, graph: WeightedGraph, linked: Linked, nodes: Scores, hops: int
) -> Ranked:
    """Rank passages by similarity times relevance of their entities, both scaled so that neither is 0 or below."""
    n_rows = knowledge.n_rows
    near = _within(graph, linked.entities + n_rows, hops)
    entities = np.where(near, nodes, 0.0)[n_rows:]
    ranks = relevance_of(knowledge, entities)
    relevance = ranks / (ranks.max(initial=0.0) or 1.0)
    similarity = dense.by_row(dense.scaled, n_rows)
    scores = (_FLOOR + (1 - _FLOOR) * similarity) * (_FLOOR + (1 - _FLOOR) * relevance)
    return Ranked(scores, ranks, np.zeros(n_rows), entities)


def relevance_of(knowledge: KnowledgeGraph, entities: Scores) -> Scores:
    """Return per row the sum of the scores of the entities in its passage."""
    rows, named = knowledge.mentions.T
    return np.bincount(rows, entities[named], knowledge.n_rows).astype(np.float64)


def _within(graph: WeightedGraph, start: Rows, hops: int) -> Mask:
    reached = np.zeros(graph.graph.n_nodes, np.bool_)
    reached[start] = True
    last = start
    for _ in range(hops):
        _, neighbours, _ = graph.steps(last)
        last = np.unique(neighbours)
        last = last[~reached[last]]
        reached[last] = True
    return reached


def _shares(restarts: Restarts, n_rows: int) -> Scores:
    is_passage = restarts.rows < n_rows
    shares = np.bincount(restarts.rows[is_passage], restarts.weights[is_passage], n_rows)
    return shares / (restarts.weights.sum() or 1.0)


# Optional calls of a language model, one per query: to choose the triples near it that help to answer it (recognition memory,
# as published), or to extract its entities with the prompt for passages.
#
# It can only choose: triples are shown by number, and other numbers are ignored; an entity counts only if the query names it.
# A query without a usable answer keeps all its triples, or the entities that rules find.

_MOST_QUERY = 2000
_MOST_NAMES = 20


def helpful_triples(lm: LanguageModel, knowledge: KnowledgeGraph, queries: list[str], shown: list[Rows]) -> list[Rows]:
    """Return the triples of each query that the model keeps, in their order."""
    from nlp_retrieval.lm import ask_all, dspy
    from nlp_retrieval.systems.hipporag.programs import ChooseFacts

    asked = [number for number, triples in enumerate(shown) if len(triples) and fenced(queries[number])]
    if not asked:
        return shown
    questions = [
        {
            "question": fenced(queries[number][:_MOST_QUERY]),
            "facts": "\n".join(
                f"{place}. {fenced(knowledge.shown(one))}" for place, one in enumerate(shown[number].tolist(), 1)
            ),
        }
        for number in asked
    ]
    program = dspy.Predict(ChooseFacts)
    answers = ask_all(lm, program, questions, "helpful", _read, "hipporag: filter", "keep all their triples")
    kept = list(shown)
    for number, answer in zip(asked, answers, strict=True):
        if answer is not None:
            kept[number] = shown[number][np.array(sorted(answer), np.int64) - 1]
    return kept


def names_in(lm: LanguageModel | None, queries: Sequence[str]) -> list[list[str]]:
    """Return the names in each query, extracted as those of passages are, or by rules; of some queries, none."""
    by_rules = [sorted(entities_by_rules(query)) for query in queries]
    shown = [fenced(query[:_MOST_QUERY]) for query in queries]
    questions = [{"passages": f"1: {text}"} for text in shown if text]
    if lm is None or not questions:
        return by_rules
    from nlp_retrieval.lm import ask_all, dspy
    from nlp_retrieval.systems.hipporag.programs import ExtractKnowledge

    program, otherwise = dspy.Predict(ExtractKnowledge), "are linked by the names in them"
    answers = iter(ask_all(lm, program, questions, "knowledge", _named, "hipporag: entities", otherwise))
    extracted = [next(answers) if text else [] for text in shown]
    return [rules if names is None else names for names, rules in zip(extracted, by_rules, strict=True)]


def _named(question: Mapping[str, Any], answer: object) -> list[str] | None:
    """Return the entities in an answer that its question names; None if it cannot be read, or all of them are others."""
    from nlp_retrieval.systems.hipporag.extraction import knowledge_in

    read = knowledge_in(1, answer)
    if read is None:
        return None
    words = f" {phrase_of(question['passages'].partition(':')[2])} "
    extracted = [phrase for name in read[0].knowledge.entities if (phrase := phrase_of(name))]
    named = [phrase for phrase in dict.fromkeys(extracted) if f" {phrase} " in words]
    return None if extracted and not named else named[:_MOST_NAMES]


def _read(question: Mapping[str, Any], answer: object) -> list[int] | None:
    """Return the numbers of facts in an answer, a list or a text of nothing else; None if it is neither, or all are others."""
    n_shown = question["facts"].count("\n") + 1
    written = re.sub(r"\b(?:facts?|and|json)\b", "", str(answer), flags=re.IGNORECASE)
    numbers = map(int, [] if re.search(r"[^\W\d_]", written) else re.findall(r"(?<![-\d.])\d{1,9}(?!\d|\.\d)", written))
    shown = [number for number in dict.fromkeys(numbers) if 1 <= number <= n_shown]
    return shown if shown or answer in ([], "[]") else None


class BaseEmbeddingModel(BaseEncoder):
    """An encoder of one method and a dimension, as HippoRAG's own are written; queries and passages are encoded alike.

    Examples:
        >>> class Letters(BaseEmbeddingModel):
        ...     dimension = 3
        ...
        ...     def encode(self, texts):
        ...         return [[text.count(letter) for letter in "abc"] for text in texts]
        >>> Letters().encode_queries(["a cab"]).tolist()
        [[2.0, 1.0, 1.0]]
    """

    dimension: int
    """Of the vectors."""

    @abstractmethod
    def encode(self, texts: list[str]) -> Any:
        """Return ``[texts, dimension]``, of any kind of numbers."""

    def encode_queries(self, queries: list[str]) -> Vectors:
        return np.asarray(self.encode(queries), np.float32)

    def encode_passages(self, passages: list[str]) -> Vectors:
        return np.asarray(self.encode(passages), np.float32)

    def model_fingerprint(self) -> str:
        return f"{type(self).__qualname__} {self.dimension}"


_MOST_TOLD = 5
_SIMILARITIES_AT_ONCE = 2**22
_QUERIES_AT_ONCE = 64


class HippoRagRetriever(BaseRetriever):
    """Walks over passages and their entities, from the triples nearest to the query.

    All passages can be found, with or without knowledge: unreached ones follow in the order of their similarity to the query,
    and if no triple is left all are ranked by it. After updates the graph is that of an index built at once, except that an
    entity with more than 100 synonyms, some of them deleted, has fewer until ``compact``.

    Args:
        encoder: for queries, passages, phrases and triples: a model's hub name, a local folder, or an encoder.
        knowledge: a file of entities and triples by passage (see ``OpenIeFile``), or a knowledge store, as a file or database
            URL (with ``#`` and the beginning of an extraction's fingerprint, where it holds several); read when passages are
            indexed and never when they are searched. The index stores the digest of its content: ``sha256:`` and the digest can
            replace it. Without it nothing is known about passages.
        added_knowledge: the same for passages that are added later; by default ``knowledge``, if it names one.
        linking: targets of the query's links: ``triples`` as published, or ``entities``: those nearest to each name in the
            query; passages are then ranked by similarity times relevance, a variant of three stages that others describe as
            HippoRAG 2.
        triple_k: number of linked triples, or with other linking of entities (per name).
        entity_k: number of entities of the triples that the walk starts from.
        lm: a language model, called once per query: with ``triples`` it removes those that do not help, with ``entities`` it
            extracts those of the query as it does those of passages; by default rules find them.
        passage_weight: weight of restarts at passages, compared with 1 for an entity that only one passage names. With 0
            passages are not nodes, and are ranked by their entities.
        damping: probability that the walk follows a link instead of restarting.
        synonym_threshold: least cosine of the vectors of synonyms.
        hops: for ``entities``: largest distance of other entities from those of the query, in links.
        merge: merging of sub-queries of one query: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> searcher = Searcher([HippoRagRetriever(encoder, knowledge="knowledge.jsonl")])
        >>> report = searcher.index(items, "index")
        >>> [hit.item.item_id for hit in searcher.search("What does the blue whale eat?", k=2)[0]]
        ['whale', 'krill']
    """

    name = "hipporag"
    manifest_may_set = may_set(
        *("linking", "triple_k", "entity_k", "lm", "passage_weight", "damping"),
        *("synonym_threshold", "hops", "merge"),
        encoder=reads_model,
        knowledge=reads_knowledge,
        added_knowledge=READS_FILE,
    )
    format_version = 4
    search_only = frozenset("added_knowledge linking triple_k entity_k lm passage_weight damping hops merge".split())

    def __init__(
        self,
        encoder: str | BaseEncoder = "sentence-transformers/all-MiniLM-L6-v2",
        knowledge: str | None = None,
        added_knowledge: str | None = None,
        linking: Literal["triples", "entities"] = "triples",
        triple_k: Annotated[int, Field(ge=1, le=1000)] = 5,
        entity_k: Annotated[int, Field(ge=1, le=2000)] = 5,
        lm: LanguageModel | None = None,
        passage_weight: Annotated[float, Field(ge=0, le=1000)] = 0.05,
        damping: Annotated[float, Field(ge=0, lt=1)] = 0.5,
        synonym_threshold: Annotated[float, Field(ge=0.1, le=1)] = 0.8,
        hops: Annotated[int, Field(ge=1, le=2)] = 2,
        merge: MergeRule = "alternate",
    ) -> None:
        self.encoder = as_encoder(encoder)
        self.knowledge = knowledge
        self.added_knowledge = added_knowledge
        self.linking = linking
        self.triple_k = triple_k
        self.entity_k = entity_k
        self.lm = None if lm is None else LanguageModel.of_client(lm)
        self.passage_weight = passage_weight
        self.damping = damping
        self.synonym_threshold = synonym_threshold
        self.hops = hops
        self.merge = merge
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration
        self._dense = FaissRetriever(self.encoder)

    def index_identity(self) -> Config:
        return super().index_identity() | {"knowledge": digest_of(self.knowledge)}

    @property
    def recorded_config(self) -> Config:
        return super().recorded_config | {"knowledge": digest_of(self.knowledge), "added_knowledge": None}

    def calls_per_query(self) -> int | None:
        return 0 if self.lm is None else 1

    def parts(self) -> list[BaseRetriever]:
        return [self._dense]

    def build(self, items: ItemTable, folder: Path) -> None:
        build_files(items, folder, source_of(self.knowledge), self.encoder, self.synonym_threshold)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        source = joining_source_of(self.knowledge, self.added_knowledge)
        extend_files(items, folder, segments, source, self.encoder, self.synonym_threshold)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        del items
        join_files(segments, folder, self.synonym_threshold)

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._graph_of_index = open_knowledge(segments)
        whole = len(segments) == 1 and segments[0].live is None
        walks_passages = self.passage_weight > 0 and self.linking != "entities"
        self._graph = self._graph_of_index.weighted(segments[0].folder if whole else None, passages=walks_passages)
        self._walks_passages = walks_passages
        (opened,) = self._opened_parts
        if not isinstance(opened, FaissRetriever):
            raise EngineError(f"{self.name} opened {opened!r} for similarities")
        self._open_dense = opened

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        n_rows = self._graph_of_index.n_rows
        rows = np.arange(n_rows) if allowed is None else np.flatnonzero(allowed)
        lists: list[tuple[Rows, Scores]] = []
        signals: dict[str, list[Scores]] = {"pagerank": [], "seeds": [], "similarity": []}
        for _, dense, ranked in self._ranked(queries):
            best, scores = top_k(rows, ranked.scores[rows], k)
            lists.append((best, scores))
            similarity = dense.by_row(dense.similarities, n_rows)
            for key, column in (("pagerank", ranked.ranks), ("seeds", ranked.seeds), ("similarity", similarity)):
                signals[key].append(column[best])
        columns = {key: np.concatenate([np.zeros(0), *parts]) for key, parts in signals.items()}
        return replace(Hits.from_lists(lists), signals=columns)

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        knowledge = self._graph_of_index
        ((linked, dense, ranked),) = self._ranked([query])
        near = [f'"{knowledge.shown(triple)}"' for triple in linked.triples.tolist()]
        near = near or [f'"{knowledge.phrase(entity)}"' for entity in linked.entities.tolist()]
        explained: list[Explanation | None] = []
        visited = self._visited(ranked, rows)
        for row, item, names in zip(rows.tolist(), items.items(rows), visited, strict=True):
            walk = f"the query is near {' and '.join(near)}, and the walk from there visits {' and '.join(map(repr, names))}"
            reason = walk if names else f"similarity ranks it {np.flatnonzero(dense.rows == row)[0] + 1} of {len(dense.rows)}"
            explained.append(Explanation(item, reason, (), float(ranked.ranks[row])))
        return explained

    def supporting_entities(self, query: str, rows: Rows) -> list[list[str]]:
        """Return the five entities of each passage that the walk of a query visits most, most visited first."""
        ((_, _, ranked),) = self._ranked([query])
        return self._visited(ranked, rows)

    def _visited(self, ranked: Ranked, rows: Rows) -> list[list[str]]:
        knowledge = self._graph_of_index
        if not len(ranked.entities):
            return [[] for _ in rows]
        begins, ends = (np.searchsorted(knowledge.mentions[:, 0], rows, side).tolist() for side in ("left", "right"))
        supporting = []
        for begin, end in zip(begins, ends, strict=True):
            named = knowledge.mentions[begin:end, 1]
            named = named[ranked.entities[named] > 0]
            best = named[np.lexsort((named, -ranked.entities[named]))[:_MOST_TOLD]]
            supporting.append([knowledge.phrase(entity) for entity in best.tolist()])
        return supporting

    def _ranked(self, queries: list[str]) -> Iterator[tuple[Linked, DenseScores, Ranked]]:
        n_rows = self._graph_of_index.n_rows
        at_once = max(1, min(_QUERIES_AT_ONCE, _SIMILARITIES_AT_ONCE // max(n_rows, 1)))
        for first in range(0, len(queries), at_once):
            part = queries[first : first + at_once]
            with stage(f"{self.name}.similarity"):
                vectors = self._open_dense.encode(part)
                hits = self._open_dense.search_vectors(vectors, n_rows, self._live)
            with stage(f"{self.name}.linking"):
                linked = self._linked(part, vectors)
            bounds = pairwise(hits.offsets.tolist())
            dense = [DenseScores(hits.rows[begin:end], hits.scores[begin:end]) for begin, end in bounds]
            with stage(f"{self.name}.pagerank"):
                ranked = [self._ranking(*pair) for pair in zip(linked, dense, strict=True)]
            yield from zip(linked, dense, ranked, strict=True)

    def _linked(self, queries: list[str], vectors: Vectors) -> list[Linked]:
        knowledge = self._graph_of_index
        if self.linking == "entities":
            return linked_by_names(knowledge, queries, names_in(self.lm, queries), self._open_dense.encode, self.triple_k)
        lm = self.lm
        nearest = knowledge.triples.nearest(vectors, self.triple_k)
        shown = [triples for triples, _ in nearest]
        kept = shown if lm is None else helpful_triples(lm, knowledge, queries, shown)
        return linked_by_triples(knowledge, vectors, nearest, kept, self.entity_k)

    def _ranking(self, linked: Linked, dense: DenseScores) -> Ranked:
        knowledge = self._graph_of_index
        if len(linked.entities) == 0:
            return ranked_by_similarity(knowledge, dense)
        restarts = restarts_of(linked, dense, self.passage_weight if self._walks_passages else 0.0, knowledge.n_rows)
        nodes = pagerank(self._graph, restarts, self.damping)
        if self.linking == "entities":
            return ranked_by_product(knowledge, dense, self._graph, linked, nodes, self.hops)
        return ranked_by_walk(knowledge, dense, restarts, nodes, self._walks_passages)
