"""Retrieval over the sentences that name entities: relations between passages without titles, links or a language model.

The entities that a query names lead over the sentences most like the query to further entities
(:mod:`nlp_retrieval.retrievers.entity_sentences.graph.activation`). A walk over passages and entities that keeps returning to
these entities and to the hits of other retrievers finds the passages (LinearRAG, Zhuang et al., 2025,
https://arxiv.org/abs/2510.10114, with hits of any retrievers instead of similarities to all passages, and entities by rules).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores, offsets_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.registry import ByName, with_parts_made
from nlp_retrieval.core.components.trust_rules import loads_pipeline, may_set, reads_model
from nlp_retrieval.core.explanation import Explanation, Step
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.core.measure import stage
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.ranking import foremost, scaled
from nlp_retrieval.core.search.composition import labelled
from nlp_retrieval.core.search.joining import MergeRule
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.stages import current_stages
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, checked_vectors
from nlp_retrieval.encoders.sentence_transformer import SentenceTransformerEncoder
from nlp_retrieval.retrievers.entity_sentences.files import dimension_of, join_sentences, open_vectors, write_sentences
from nlp_retrieval.retrievers.entity_sentences.graph.activation import Activation, activate
from nlp_retrieval.retrievers.entity_sentences.graph.named_sentences import NamedSentences
from nlp_retrieval.retrievers.entity_sentences.graph.sentence_graph import QueryNames, SentenceGraph
from nlp_retrieval.retrievers.faiss.exact import Stack, products_of
from nlp_retrieval.retrievers.faiss.retriever import FaissRetriever
from nlp_retrieval.retrievers.link_graph.candidates import by_row, looked_up, scores_below
from nlp_retrieval.retrievers.link_graph.links.base import LinkSentence
from nlp_retrieval.retrievers.link_graph.links.entity_sentences import shown_mention
from nlp_retrieval.retrievers.link_graph.store.added_links import live_of
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import hash_of
from nlp_retrieval.retrievers.link_graph.walk.chains import LinkChain, strongest_chains
from nlp_retrieval.retrievers.link_graph.walk.evidence import FLOOR
from nlp_retrieval.retrievers.link_graph.walk.pagerank import Restarts, local_pagerank
from nlp_retrieval.text.entities import RULES, EntityFinder, EntityRule
from nlp_retrieval.text.sentence_entities import PassageEntities, entities_by_sentence


@dataclass(frozen=True)
class Started:
    """Where the walk of a query restarts.

    Args:
        names: the entities that the query names.
        active: the entities that they lead to.
        rows: hits of the seeds, ascending.
        shares: of the restarts that are at each; those of rows and entities together sum to 1, or are all 0.
        entity_shares: the same of the active entities.
        scores: hits of each seed: rows, best first, and their scores.
    """

    names: QueryNames
    active: Activation
    rows: Rows
    shares: Scores
    entity_shares: Scores
    scores: dict[str, tuple[Rows, Scores]]


_KIND = "entity_sentences"


def explanations_of(
    rows: Rows,
    graph: SentenceGraph,
    start: Started,
    restarts: tuple[Rows, Scores],
    damping: float,
    items: ItemTable,
    finder: EntityFinder,
) -> list[Explanation | None]:
    """Put the strongest chain to each passage into words; None where none leads there.

    Args:
        rows: the passages.
        graph: what the walk follows.
        start: where it restarts, and why.
        restarts: nodes, ascending, and the shares of the restarts at each.
        damping: probability of following a link.
        items: the items of the index.
        finder: finds the entities, as when the index was built.
    """
    chains = strongest_chains(graph.walk, *restarts, rows, damping)
    teller = _Teller(graph, start, items, finder)
    return [None if chain is None else teller.told(chain) for chain in chains]


@dataclass(frozen=True)
class _Stop:
    """A passage of a chain.

    Args:
        row: of the passage.
        entity: over which it was reached; None where the search began at it.
        sentence: which of its sentences led on, as a number of the graph; None where none did.
    """

    row: int
    entity: int | None
    sentence: int | None = None


class _Teller:
    """Tells chains of passages and entities as steps between passages.

    Args:
        graph: what the walk follows.
        start: where it restarts, and why.
        items: the items of the index.
        finder: finds the entities, as when the index was built.
    """

    def __init__(self, graph: SentenceGraph, start: Started, items: ItemTable, finder: EntityFinder) -> None:
        self._graph, self._start, self._items, self._finder = graph, start, items, finder
        self._known: dict[int, tuple[SearchableItem, PassageEntities]] = {}

    def told(self, chain: LinkChain) -> Explanation:
        """An explanation of a chain that ends at a passage."""
        stops = [next(same) for _, same in groupby(self._stops(chain), key=attrgetter("row"))]
        steps = tuple(self._step(one.row, other) for one, other in pairwise(stops))
        return Explanation(self._read(stops[-1].row)[0], self._origin(stops[0]), steps, chain.strength)

    def _stops(self, chain: LinkChain) -> Iterator[_Stop]:
        """The passages in turn: those of the sentences that led to the first entity, then those of the walk."""
        first_entity = self._graph.n_passages
        nodes = chain.rows
        if nodes[0] >= first_entity:
            for sentence, entity in self._start.active.bridges_to(nodes[0] - first_entity):
                yield _Stop(int(self._graph.owner[sentence]), entity, sentence)
        for number, node in enumerate(nodes):
            if node < first_entity:
                yield _Stop(node, nodes[number - 1] - first_entity if number else None)

    def _origin(self, stop: _Stop) -> str:
        """Why the search began at a passage, in words."""
        if stop.entity is not None:
            named = dict(zip(self._start.names.entities.tolist(), self._start.names.texts, strict=True))
            shown = self._shown(stop)
            return f"the query names {named[stop.entity]!r}" + (f", and its text says: {shown.text}" if shown else "")
        reasons = []
        for label, (rows, scores) in self._start.scores.items():
            positions = np.flatnonzero(rows == stop.row)
            if len(positions):
                reasons.append(f"{label} ranks it {int(positions[0]) + 1} of {len(rows)} (score {scores[positions[0]]:.3g})")
        return " and ".join(reasons)

    def _step(self, row: int, stop: _Stop) -> Step:
        """A step over an entity that both passages name, with a sentence that names it."""
        source, target = self._read(row)[0], self._read(stop.row)[0]
        shown, along = self._shown(stop), False
        if shown is None:
            shown, along = self._shown(_Stop(row, stop.entity)), True
        sentence = (shown.text, shown.start, shown.end) if shown else ()
        return Step(source, target, _KIND, along and shown is not None, *sentence)

    def _shown(self, stop: _Stop) -> LinkSentence | None:
        """The sentence of a passage that led on, or else the first that names the entity; None where only its title does."""
        item, passage = self._read(stop.row)
        wanted = None if stop.entity is None else int(self._graph.hashes[stop.entity])
        named = [{name for name in names if hash_of(name) == wanted} for names in passage.sentences]
        first = int(self._graph.sentences[stop.row])
        numbers = range(len(named)) if stop.sentence is None else [stop.sentence - first]
        for number in numbers:
            if number < len(named) and (named[number] or stop.sentence is not None):
                return shown_mention(item.content[slice(*passage.spans[number])], named[number])
        return None

    def _read(self, row: int) -> tuple[SearchableItem, PassageEntities]:
        if row not in self._known:
            (item,) = self._items.items(np.array([row], np.int64))
            (passage,) = entities_by_sentence([item], self._finder)
            self._known[row] = item, passage
        return self._known[row]


_QUERIES_AT_ONCE = 64
_DECIMALS = 6  # of the logarithm of the walk; further ones are noise of rounding, which must not break ties
_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


class EntitySentencesRetriever(BaseRetriever):
    """Finds passages over the entities that a query names or leads to, and over hits of other retrievers.

    The score of a passage is the natural logarithm of its share of the walk, plus ``sentence_weight`` times the similarity of
    its best sentence to the query. It needs no titles and no links; a passage or a query without entities is left to the
    seeds. After an update it finds what an index built at once finds, with the same scores.

    Args:
        seeds: the retrievers with whose hits the search begins, besides the entities; each has its own index.
        encoder: for the similarity of sentences and query: a model's hub name, a local folder, or an encoder. By default that
            of the first faiss seed; without one, all-MiniLM-L6-v2.
        mentions: how entities are found: by "rules" (runs of capitalised words and quoted titles, without any model; in
            scripts without capitals quoted titles alone), or by a spaCy pipeline, given as its name or folder.
        rounds: the most sentences in a chain that leads from an entity of the query to another; 0 for the query's alone.
        threshold: an entity is led to if the product of the similarities along the chain is at least this. Similarities of
            another encoder are distributed differently.
        max_passages: an entity that more passages name says too little, and is not led to.
        entity_weight: how often the walk restarts at entities, compared with 1 for the seeds' hits.
        depth: how many hits of each seed count.
        seed_power: a hit counts as much as its min-max normalised score to this power.
        damping: probability that the walk follows a link instead of restarting.
        epsilon: how much of the walk per link may be left unfollowed; smaller is closer and slower.
        pool: of how many of the most-walked passages the sentences are compared; the others follow in the order of the walk.
        sentence_weight: how much the best sentence counts.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.
    """

    name = "entity_sentences"
    manifest_may_set = may_set(
        *("seeds", "rounds", "threshold", "max_passages", "entity_weight", "depth", "seed_power", "damping", "epsilon"),
        *("pool", "sentence_weight", "merge"),
        encoder=reads_model,
        mentions=loads_pipeline,
    )
    format_version = 2
    search_only = frozenset(
        "seeds rounds threshold max_passages entity_weight depth seed_power damping epsilon pool sentence_weight merge".split()
    )

    def __init__(
        self,
        seeds: Sequence[BaseRetriever | ByName] | Mapping[str, BaseRetriever | ByName],
        encoder: str | BaseEncoder | None = None,
        mentions: EntityRule = RULES,
        rounds: Annotated[int, Field(ge=0, le=10)] = 2,
        threshold: Annotated[float, Field(gt=0, le=1)] = 0.3,
        max_passages: Annotated[int, Field(ge=1)] = 100,
        entity_weight: Annotated[float, Field(ge=0, le=1000)] = 2.0,
        depth: Annotated[int, Field(ge=1)] = 50,
        seed_power: Annotated[float, Field(gt=0, le=100)] = 4.0,
        damping: Annotated[float, Field(ge=0, lt=1)] = 0.7,
        epsilon: Annotated[float, Field(gt=0, lt=1)] = 1e-6,
        pool: Annotated[int, Field(ge=1)] = 60,
        sentence_weight: Annotated[float, Field(ge=0, le=1000)] = 3.0,
        merge: MergeRule = "alternate",
    ) -> None:
        self.seeds = labelled(with_parts_made(self, EntitySentencesRetriever, seeds=seeds)["seeds"], "entity_sentences: seeds")
        self.encoder = _encoder_of(self.seeds, encoder)
        self._arguments["encoder"] = self.encoder  # a name, a default and their encoder are the same configuration
        self.mentions = mentions
        self.rounds = rounds
        self.threshold = threshold
        self.max_passages = max_passages
        self.entity_weight = entity_weight
        self.depth = depth
        self.seed_power = seed_power
        self.damping = damping
        self.epsilon = epsilon
        self.pool = pool
        self.sentence_weight = sentence_weight
        self.merge = merge
        self._finder = EntityFinder(mentions)

    def index_identity(self) -> Config:
        return super().index_identity() | self._finder.identity()

    def parts(self) -> list[BaseRetriever]:
        return list(self.seeds.values())

    def build(self, items: ItemTable, folder: Path) -> None:
        write_sentences(items, folder, self._finder, self.encoder)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        write_sentences(items, folder, self._finder, self.encoder, dimension_of(segments[0]))

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        del items
        join_sentences(segments, folder)

    def load(self, folder: Path) -> None:
        self.load_segments([SegmentFolder(folder, 0, NamedSentences.n_passages_in(folder))])

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._n_live = int((live_of(segments) if self._live is None else self._live).sum())
        self._graph = SentenceGraph.of(NamedSentences.open_all(segments), self._n_live)
        self._vectors: Stack = open_vectors(segments)
        self._open_seeds = dict(zip(self.seeds, self._opened_parts, strict=True))

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        lists: list[tuple[Rows, Scores]] = []
        signals: list[dict[str, Scores]] = []
        for first in range(0, len(queries), _QUERIES_AT_ONCE):
            vectors, started = self._started(queries[first : first + _QUERIES_AT_ONCE])
            with stage(f"{self.name}.walk"):
                walks = list(self._walks(started))
            with stage(f"{self.name}.sentences"):
                for vector, start, walk in zip(vectors, started, walks, strict=True):
                    rows, scores, columns = self._ranked(vector, start, *walk, allowed, k)
                    lists.append((rows, scores))
                    signals.append(columns)
        keys = list(dict.fromkeys(key for part in signals for key in part))
        return replace(Hits.from_lists(lists), signals={key: np.concatenate([part[key] for part in signals]) for key in keys})

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        _, (start,) = self._started([query])
        restarts = np.concatenate([start.rows, start.active.entities + self._graph.n_passages])
        shares = np.concatenate([start.shares, start.entity_shares])
        return explanations_of(rows, self._graph, start, (restarts, shares), self.damping, items, self._finder)

    def _started(self, queries: list[str]) -> tuple[Vectors, list[Started]]:
        with stage(f"{self.name}.encode"):
            vectors = current_stages().encoded(self.encoder, queries, self._encode)
        with stage(f"{self.name}.seeds"):
            depth = min(self.depth, self._n_live)
            hits_of = {label: seed.find(queries, depth, self._graph.n_passages) for label, seed in self._open_seeds.items()}
        with stage(f"{self.name}.activation"):
            return vectors, [self._start(number, query, vectors[number], hits_of) for number, query in enumerate(queries)]

    def _encode(self, queries: list[str]) -> Vectors:
        return checked_vectors(self.encoder.encode_queries(queries), queries, self.encoder, self._vectors.dimension)

    def _similarities(self, vector: Vectors, sentences: Rows) -> Scores:
        owner = np.zeros(len(sentences), np.int64)
        return products_of(vector[None], self._vectors.at, owner, sentences).astype(np.float64)

    def _start(self, number: int, query: str, vector: Vectors, hits_of: dict[str, Hits]) -> Started:
        names = self._graph.named_by(query)
        similar = partial(self._similarities, vector)
        active = activate(self._graph, names.entities, similar, self.rounds, self.threshold, self.max_passages)
        rows_of, weights_of = [np.zeros(0, np.int64)], [np.zeros(0)]
        scores: dict[str, tuple[Rows, Scores]] = {}
        for label, hits in hits_of.items():
            scores[label] = hits.of(number)
            rows_of.append(scores[label][0])
            found = scaled(scores[label][1], min(self.depth, self._n_live))
            weights_of.append(np.maximum(found**self.seed_power, FLOOR))
        rows, place = np.unique(np.concatenate(rows_of), return_inverse=True)
        weights = np.bincount(place, np.concatenate(weights_of), len(rows))
        weights = weights / (weights.sum() or 1.0)
        values = self.entity_weight * active.values / (active.values.sum() or 1.0)
        total = (weights.sum() + values.sum()) or 1.0
        return Started(names, active, rows, weights / total, values / total, scores)

    def _walks(self, started: list[Started]) -> Iterator[tuple[Rows, Scores]]:
        """For each query, the passages that its walk reaches, ascending, and its share of each."""
        first_entity = self._graph.n_passages
        parts = [(start.rows, start.active.entities + first_entity) for start in started]
        restarts = Restarts(
            offsets_of([len(rows) + len(entities) for rows, entities in parts]),
            np.concatenate([column for part in parts for column in part]),
            np.concatenate([column for start in started for column in (start.shares, start.entity_shares)]),
        )
        walks = local_pagerank(self._graph.walk, restarts, self.damping, self.epsilon)
        for begin, end in pairwise(walks.offsets.tolist()):
            stop = begin + int(np.searchsorted(walks.rows[begin:end], first_entity))
            yield walks.rows[begin:stop], walks.ranks[begin:stop]

    def _ranked(
        self, vector: Vectors, start: Started, rows: Rows, ranks: Scores, allowed: Mask | None, k: int
    ) -> tuple[Rows, Scores, dict[str, Scores]]:
        if allowed is not None:
            rows, ranks = rows[allowed[rows]], ranks[allowed[rows]]
        walked: Scores = np.log(ranks + FLOOR).round(_DECIMALS)
        order = foremost(walked, max(self.pool, k))
        rows, ranks, scores = rows[order], ranks[order], walked[order]
        pooled = rows[: self.pool]
        sentence = np.full(len(rows), np.nan)
        similarities = self._similarities(vector, self._graph.sentences_of(pooled))
        sentence[: len(pooled)] = self._graph.best_sentences(pooled, similarities)
        scores[: len(pooled)] += self.sentence_weight * sentence[: len(pooled)]
        if len(rows) > len(pooled):
            scores[len(pooled) :] = scores_below(float(scores[: len(pooled)].min()), len(rows) - len(pooled))
        best = np.lexsort((rows, -scores))[:k]
        signals = {
            "pagerank": ranks,
            "seeds": looked_up(rows, start.rows, start.shares, 0.0),
            "sentence": sentence,
        } | {f"seed.{label}": looked_up(rows, *by_row(*hits), np.nan) for label, hits in start.scores.items()}
        return rows[best], scores[best], {key: column[best] for key, column in signals.items()}


def _encoder_of(seeds: Mapping[str, BaseRetriever], encoder: str | BaseEncoder | None) -> BaseEncoder:
    if encoder is None:
        encoder = next((seed.encoder for seed in seeds.values() if isinstance(seed, FaissRetriever)), _MODEL)
    return SentenceTransformerEncoder(encoder) if isinstance(encoder, str) else encoder
