"""Multi-hop retrieval without a language model: passages found by other retrievers lead to those they are linked to.

A walk over the links between passages restarts at the seeds' hits and at the titles that a query names; Personalized PageRank
finds the passages near them (as in HippoRAG, Gutierrez et al., 2024, https://arxiv.org/abs/2405.14831, with titles and entities
instead of triples that a language model extracted). The passages with the highest ranks are then scored by a weighted sum of
evidence (:mod:`nlp_retrieval.retrievers.link_graph.walk`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import RRF_K, Hits, Mask, MergeRule, Rows, Scores, reciprocal_ranks, scaled, top_k_positions
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.registry import ByName, labelled, numbered_names, resolve_components
from nlp_retrieval.core.components.trust_rules import may_set, reads_model
from nlp_retrieval.core.context import encoding_once, stage
from nlp_retrieval.core.index.generation import Generation, SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import Explanation, Step
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.sentence_transformer import as_encoder
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning
from nlp_retrieval.retrievers.faiss.retriever import FaissRetriever
from nlp_retrieval.retrievers.link_graph.clauses import clauses_of, names_in
from nlp_retrieval.retrievers.link_graph.extractors import BaseLinkExtractor, JoiningItems, SharedEntities
from nlp_retrieval.retrievers.link_graph.graph import (
    Links,
    WeightedGraph,
    live_of,
    open_graph,
    write_added_links,
    write_link_graph,
)
from nlp_retrieval.retrievers.link_graph.mentions import FLOOR as LEAST_EVIDENCE
from nlp_retrieval.retrievers.link_graph.mentions import TitleMentions, of_bearers
from nlp_retrieval.retrievers.link_graph.relations import asked_relations, relation_evidence
from nlp_retrieval.retrievers.link_graph.tables import PassageTerms, TitleTable, places_in
from nlp_retrieval.retrievers.link_graph.walk import (
    DEFAULT_WEIGHTS,
    FLOOR,
    LinkChain,
    LinkedPairs,
    Restarts,
    checked_weights,
    coverage_evidence,
    links_among,
    local_pagerank,
    pagerank,
    strongest_chains,
)

# The computations for one query: the restarts of its walk, and the candidates that the walk reaches.


class Rewritten(NamedTuple):
    """A question with a name in place of a clause, its vector, and the passages that the name is from: they are no answers."""

    text: str
    vector: Vectors
    sources: Rows


class Seeded(NamedTuple):
    """Restarts of a query's walk, and what they come from."""

    vector: Vectors | None
    restarts: Restarts
    scores: dict[str, tuple[Rows, Scores]]
    """Hits of each seed: rows, best first, and their scores."""
    titled_rows: Rows
    """Rows whose titles the query names, ascending, with the certainty of each, 0 to 1."""
    titled: Scores
    rewritten: Sequence[Rewritten] = ()


class GraphCandidates(NamedTuple):
    """The candidates of a query, by falling share of the walk."""

    rows: Rows
    ranks: Scores
    shares: Scores
    """Of the restarts of the walk."""
    evidence: dict[str, Scores]
    """By kind, for the first candidates; see :data:`~nlp_retrieval.retrievers.link_graph.walk.DEFAULT_WEIGHTS`."""
    seeds: dict[str, Scores]
    """The score that each seed gave; NaN if it did not find the row."""

    def ranked(self, weights: Mapping[str, float], k: int) -> tuple[Rows, Scores, dict[str, Scores]]:
        """Return the best k rows by weighted evidence, their scores and their signals."""
        n_pooled = len(self.evidence["pagerank"])
        scores = np.zeros(len(self.rows))
        scores[:n_pooled] = sum(weights[kind] * column for kind, column in self.evidence.items())
        if len(self.rows) > n_pooled:
            scores[n_pooled:] = scores_below(float(scores[:n_pooled].min()), len(self.rows) - n_pooled)
        order = np.lexsort((self.rows, -scores))[:k]
        signals = {"seeds": self.shares[order], "pagerank": self.ranks[order]}
        unknown = np.full(len(self.rows) - n_pooled, np.nan)
        signals |= {kind: np.append(self.evidence[kind], unknown)[order] for kind in DEFAULT_WEIGHTS if kind != "pagerank"}
        signals |= {f"seed.{label}": column[order] for label, column in self.seeds.items()}
        return self.rows[order], scores[order], signals


def scores_below(lowest: float, count: int) -> Scores:
    """Return strictly falling scores below a score, within a narrow range, by position only: the same for every ``count``."""
    return lowest - max(1.0, abs(lowest)) * (2.0 - 1.0 / np.arange(1, count + 1))


def fused_ranks(wanted: Rows, seeded: Seeded) -> Scores:
    """Return the reciprocal rank fusion of the seeds' hits: 1 for the first place with all, 0 for rows that none found."""
    fused = np.zeros(len(wanted))
    for rows, scores in seeded.scores.values():
        shares = reciprocal_ranks(1 + np.searchsorted(-scores, -scores), weights=RRF_K + 1)
        fused += looked_up(wanted, rows, shares, 0.0)
    return fused / max(len(seeded.scores), 1)


def looked_up(wanted: Rows, rows: Rows, values: Scores, otherwise: float) -> Scores:
    """Return the values of wanted rows, ``otherwise`` for rows without one."""
    wanted_values, order = np.full(len(wanted), otherwise), np.argsort(rows)
    places = places_in(rows[order], wanted)
    wanted_values[places >= 0] = values[order][places[places >= 0]]
    return wanted_values


def _origin(row: int, seeded: Seeded) -> str:
    """The reason why the walk restarts at a row, in words."""
    reasons = []
    for label, (rows, scores) in seeded.scores.items():
        positions = np.flatnonzero(rows == row)
        if len(positions):
            reasons.append(f"{label} ranks it {int(positions[0]) + 1} of {len(rows)} (score {scores[positions[0]]:.3g})")
    if row in seeded.titled_rows:
        reasons.append("the query names its title")
    if not reasons and seeded.rewritten:
        reasons.append("the query with a name in place of a clause finds it")
    return " and ".join(reasons)


# Passages that a query names by their titles.


def titled_by(query: str, titles: TitleTable, terms: PassageTerms, max_shared: int) -> tuple[Rows, Scores]:
    """Return the rows whose titles a query names, ascending, and the certainty of each, above 0 and at most 1."""
    surest: dict[int, float] = {}
    wanted, information = terms.of_query(query)
    for mention in titles.find(query):
        if len(mention.rows) <= max_shared:
            likely = (LEAST_EVIDENCE + terms.covered(wanted, mention.rows) @ information) ** 2
            likely *= LEAST_EVIDENCE + terms.named(mention.rows)
            likely, parts = of_bearers(np.zeros(len(likely), np.int64), terms.bearers[mention.rows], likely)
            likely /= parts
            for row, share in zip(mention.rows.tolist(), (likely / likely.sum()).tolist(), strict=True):
                surest[row] = max(surest.get(row, 0.0), share)
    rows = np.array(sorted(surest), np.int64)
    return rows, np.array([surest[row] for row in rows.tolist()], np.float64)


_QUERIES_AT_ONCE = 64
_SEED_POWER = 4.0  # trusts the first hits; the last of a full list counts next to nothing, but is a candidate
_CLAUSES, _ANSWERS, _NAMES = 3, 2, 6  # clauses of a query, passages that answer each, names of each passage
_NAMED = 0.2  # least certainty that a query names a passage, for what that one says of its links
_DECIMALS = 6  # of the logarithm of the walk; further digits are rounding noise, which must not break ties


class LinkGraphRetriever(BaseRetriever):
    """Follows the links between passages from what other retrievers find: multi-hop without a language model.

    After an update, new passages have the same links, titles and terms as in an index built at once; deleted ones are neither
    found nor walked through. ``extend`` of each kind of links documents which links among earlier passages wait for
    ``compact``.

    Args:
        seeds: the retrievers whose hits start the search; each has its own index, shared with other configurations.
        links: the kinds of links; by default mentions of titles, and rare entities in common (at a tenth of the weight).
        encoder: for the similarity of passages and query: a model's hub name, a local folder, or an encoder. By default that
            of the first faiss seed; without one, similarity is not part of the evidence.
        depth: number of hits of each seed that count, each by the fourth power of its min-max normalised score.
        title_weight: weight of a title that the query names, compared with 1 for a seed's best hit.
        damping: probability that the walk follows a link instead of restarting.
        pagerank: ``local`` reads only the neighbourhood, whatever the size of the graph; ``exact`` reads the whole graph.
        pool: number of passages, the first by the walk, that are scored by all evidence; the others follow in the order of the
            walk.
        weights: weights of kinds of evidence (:data:`~nlp_retrieval.retrievers.link_graph.walk.DEFAULT_WEIGHTS` lists
            them) that differ from the defaults; ``nlp-retrieval tune`` fits them.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.
        clauses: for English questions that describe what they ask about ("the sibling of the performer of Decade"): search for
            each clause, and for the question with a name from its answer in place of it; ``similarity`` is then the sum of that
            to the query and that to the best of these questions. It needs an encoder, for some 35 texts in place of one.
            Questions that compare things (by yes or no, or by "or") are not split.

    Examples:
        >>> searcher = Searcher([LinkGraphRetriever(["bm25"])])
        >>> report = searcher.index(items, "index")
        >>> hits = searcher.search("What does the Blue whale eat?", k=2)[0]
        >>> [(hit.item.title, round(hit.signals["link_graph.score"], 3)) for hit in hits]
        [('Krill', 13.076), ('Blue whale', 9.596)]
    """

    name = "link_graph"
    manifest_may_set = may_set(
        *("seeds", "links", "depth", "title_weight", "damping", "pagerank", "pool", "weights", "merge", "clauses"),
        encoder=reads_model,
    )
    format_version = 5
    _items: ItemTable
    search_only = frozenset("seeds encoder depth title_weight damping pagerank pool weights merge clauses".split())

    def __init__(
        self,
        seeds: Sequence[BaseRetriever | ByName] | Mapping[str, BaseRetriever | ByName],
        links: Sequence[BaseLinkExtractor | ByName] | None = None,
        encoder: str | BaseEncoder | None = None,
        depth: Annotated[int, Field(ge=1)] = 50,
        title_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 2.0,
        damping: Annotated[float, Field(ge=0, lt=1)] = 0.5,
        pagerank: Literal["local", "exact"] = "local",
        pool: Annotated[int, Field(ge=1)] = 60,
        weights: Mapping[str, float] | None = None,
        merge: MergeRule = "alternate",
        clauses: bool = False,
    ) -> None:
        components = resolve_components(self, LinkGraphRetriever, seeds=seeds, links=links)
        self.seeds = labelled(components["seeds"], "link_graph: seeds")
        default = [TitleMentions(), SharedEntities(weight=0.1)]
        self.links: list[BaseLinkExtractor] = default if links is None else components["links"]
        self.encoder = None if encoder is None else as_encoder(encoder)
        self._arguments |= {"links": self.links, "encoder": self.encoder}  # default and explicit names are equal
        self.depth = depth
        self.title_weight = title_weight
        self.damping = damping
        self.pagerank = pagerank
        self.pool = pool
        self.weights = checked_weights(weights)
        self.merge = merge
        self.clauses = clauses
        self._dense = _dense_part(self.seeds, self.encoder)
        if clauses and self._dense is None:
            raise ConfigurationError("link_graph: clauses=True compares vectors; add a faiss seed, or name an encoder")

    def index_identity(self) -> Config:
        links = [extractor.identity for extractor in self.links]
        return {"name": self.name, "format": self.format_version, "links": links}

    def parts(self) -> list[BaseRetriever]:
        extra = [self._dense] if self._dense and not any(self._dense is seed for seed in self.seeds.values()) else []
        return [*self.seeds.values(), *extra]

    def build(self, items: ItemTable, folder: Path) -> None:
        links = self._written(items, folder, [], items)
        write_link_graph(folder, len(items), links)
        if not any(len(part.sources) for part in links.values()):
            warnings.warn(
                f"link_graph found no links by {', '.join(links) or 'anything'}: its results will be those of its seeds. Give "
                "passages titles (metadata 'title') or aliases, explicit links (hyperlinks), or use shared_entities",
                RetrievalWarning,
                stacklevel=2,
            )

    @property
    def joins_by_extending(self) -> bool:
        if lost := [link.name for link in self._kinds().values() if not link.finds_again]:
            raise ConfigurationError(
                f"the index holds only a digest of the source of its links {lost[0]}, so they cannot be found again; call "
                "compact() of a searcher that names the source"
            )
        return True

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        write_added_links(folder, self._written(items, folder, segments, everything), len(everything))

    def _written(
        self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable
    ) -> dict[str, Links]:
        """Write the titles and terms of a segment and the tables of its links, and return the links."""
        rules = self._titles()
        titles = TitleTable.of(rules.surfaces(items))
        titles.write(folder)
        PassageTerms.of(items).write(folder)  # extractors read them
        if segments:
            first_row = len(everything) - len(items)
            titles = TitleTable.joined([(TitleTable.open_all(segments), 0, None), (titles, first_row, None)])
        links: dict[str, Links] = {}
        for number, (kind, extractor) in enumerate(self._kinds().items()):
            table, prefix = titles if extractor is rules else None, f"links_{number}_"
            links[kind], tables = extractor.extend(JoiningItems(items, everything, segments, kind, prefix, table, folder))
            for name, columns in tables.items():
                columns.write(folder, prefix + name)
        return links

    def open(self, generation: Generation) -> LinkGraphRetriever:
        opened = super().open(generation)
        opened._items = generation.items
        return opened

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        kinds = self._kinds()
        ways = {kind: (extractor.along, extractor.against) for kind, extractor in kinds.items()}
        self._graph: WeightedGraph = open_graph(segments).weighted(ways)
        self._title_table, self._terms = TitleTable.open_all(segments), PassageTerms.open_all(segments)
        self._undirected = {kind for kind, extractor in kinds.items() if not extractor.directed}
        self._n_live = int((live_of(segments) if self._live is None else self._live).sum())
        self._open_seeds = dict(zip(self.seeds, self._opened_parts, strict=False))
        opened = self._opened_parts[self.parts().index(self._dense)] if self._dense else None
        self._open_dense = opened if isinstance(opened, FaissRetriever) else None

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        lists: list[tuple[Rows, Scores]] = []
        signals: list[dict[str, Scores]] = []
        for pooled in self.pools(queries, allowed, k):
            rows, scores, signals_of_query = pooled.ranked(self.weights, k)
            lists.append((rows, scores))
            signals.append(signals_of_query)
        columns = {key: np.concatenate([part[key] for part in signals]) for key in signals[0]} if signals else {}
        return replace(Hits.from_lists(lists), signals=columns)

    def pools(self, queries: list[str], allowed: Mask | None = None, at_least: int = 1) -> Iterator[GraphCandidates]:
        """Walk from the seeds of each query, and yield the candidates with their evidence, before it is weighted.

        Args:
            queries: distinct, none blank.
            allowed: ``[items]``; the walk begins and goes anywhere, but only rows where it is True are candidates.
            at_least: number of candidates to return if the walk reaches that many, even more than ``pool``.
        """
        for first in range(0, len(queries), _QUERIES_AT_ONCE):
            part = queries[first : first + _QUERIES_AT_ONCE]
            with stage(f"{self.name}.seeds"):
                seeded = self._seeded(part, allowed)
            with stage(f"{self.name}.pagerank"):
                walks = [self._walk(one.restarts) for one in seeded]
            with stage(f"{self.name}.evidence"):
                for query, one, walk in zip(part, seeded, walks, strict=True):
                    yield self._pool(query, one, *walk, allowed, at_least)

    def explain(self, query: str, rows: Rows, items: ItemTable) -> list[Explanation | None]:
        (seeded,) = self._seeded([query])
        chains = strongest_chains(self._graph, seeded.restarts, rows, self.damping)
        return [None if chain is None else self._explained(chain, seeded, items) for chain in chains]

    def _explained(self, chain: LinkChain, seeded: Seeded, items: ItemTable) -> Explanation:
        """A chain of links in words, with the sentences that show them."""
        links, kinds, steps = self._graph.graph, list(self._kinds().items()), []
        passages = items.items(np.array(chain.rows, np.int64))
        for (row, next_row), (source, target) in zip(pairwise(chain.rows), pairwise(passages), strict=True):
            entries = np.arange(links.offsets[row], links.offsets[row + 1])
            entries = entries[links.neighbours[entries] == next_row]
            types = links.types[entries]
            number = int(types[(links.weights[entries] * self._graph.type_weights[types]).argmax()])  # of the strongest
            kind, extractor = kinds[number // 2]
            along = number % 2 == 0
            shown = extractor.evidence(source, target) if along else extractor.evidence(target, source)
            steps.append(Step(source, target, kind, along, *((shown.text, shown.start, shown.end) if shown else ())))
        return Explanation(passages[-1], _origin(chain.rows[0], seeded), tuple(steps), chain.strength)

    def _kinds(self) -> dict[str, BaseLinkExtractor]:
        """The extractors by the names of their links; a second extractor of the same name gets a number."""
        return dict(zip(numbered_names(extractor.name for extractor in self.links), self.links, strict=True))

    def _titles(self) -> TitleMentions:
        """The extractor that decides which titles count, in queries as in texts."""
        return next((extractor for extractor in self.links if isinstance(extractor, TitleMentions)), None) or TitleMentions()

    def _seeded(self, queries: list[str], allowed: Mask | None = None) -> list[Seeded]:
        """Run the seeds, twice under a filter: its items are rarely among the first hits of the whole index."""
        masks, depth = [self._live], min(self.depth, self._n_live)
        if allowed is not None and np.count_nonzero(allowed) < self._n_live:
            masks.insert(0, allowed)
        with encoding_once():
            vectors = None if self._open_dense is None else self._open_dense.encode(queries)
            hits_of = [{label: seed.find(queries, depth, mask) for label, seed in self._open_seeds.items()} for mask in masks]
        within = self._live if allowed is None else allowed
        return [
            self._restarts_of(number, query, None if vectors is None else vectors[number], hits_of, within)
            for number, query in enumerate(queries)
        ]

    def _restarts_of(
        self, number: int, query: str, vector: Vectors | None, hits_of_seeds: list[dict[str, Hits]], within: Mask | None
    ) -> Seeded:
        scores: dict[str, tuple[Rows, Scores]] = {}
        found_by: list[tuple[Rows, Scores]] = []
        for label, hits in chain.from_iterable(hits_of.items() for hits_of in hits_of_seeds):
            found_by.append(hits.of(number))
            scores.setdefault(label, found_by[-1])
        rewritten = self._rewritten(query)
        if self._open_dense is not None and rewritten:
            found_by.append(self._answers(self._open_dense, rewritten, within))
        titled_rows, titled = titled_by(query, self._title_table, self._terms, self._titles().max_shared)
        depth = min(self.depth, self._n_live)
        weights = [np.maximum(scaled(values, depth) ** _SEED_POWER, FLOOR) for _, values in found_by]
        rows, positions = np.unique(np.concatenate([*(rows for rows, _ in found_by), titled_rows]), return_inverse=True)
        summed = np.bincount(positions, np.concatenate([*weights, self.title_weight * titled]), len(rows))
        return Seeded(vector, Restarts(rows, summed / (summed.sum() or 1.0)), scores, titled_rows, titled, rewritten)

    def _rewritten(self, query: str) -> list[Rewritten]:
        """The query with names in place of its clauses: names from the passages that answer a clause best."""
        dense, clauses = self._open_dense, clauses_of(query) if self.clauses else []
        if dense is None or not clauses:
            return []
        vectors = dense.encode([clause.inner for clause in clauses])
        hits = dense.search_vectors(vectors, min(_ANSWERS, self._n_live), self._live)
        lists = [hits.of(number) for number in range(len(clauses))]
        best = sorted(range(len(clauses)), key=lambda number: -max(lists[number][1], default=0.0))[:_CLAUSES]
        sources: dict[str, list[int]] = {}
        for number in best:
            rows, _ = lists[number]
            for row, item in zip(rows.tolist(), self._items.items(rows), strict=True):
                for name in names_in(item, clauses[number].inner, _NAMES):
                    sources.setdefault(clauses[number].answered_by(name), []).append(row)
        vectors = dense.encode(list(sources)) if sources else vectors[:0]
        return [Rewritten(text, vector, np.array(rows)) for (text, rows), vector in zip(sources.items(), vectors, strict=True)]

    def _answers(self, dense: FaissRetriever, rewritten: Sequence[Rewritten], within: Mask | None) -> tuple[Rows, Scores]:
        """The first hits of rewritten queries, best first, each with its highest score."""
        depth, vectors = min(self.depth, self._n_live), np.stack([one.vector for one in rewritten])
        hits = dense.search_vectors(vectors, depth, within)
        best: dict[int, float] = {}
        for number, one in enumerate(rewritten):
            for row, score in zip(*(values.tolist() for values in hits.of(number)), strict=True):
                if row not in one.sources:
                    best[row] = max(best.get(row, score), score)
        first = sorted(best, key=lambda row: (-best[row], row))[:depth]
        return np.array(first, np.int64), np.array([best[row] for row in first], np.float64)

    def _walk(self, restarts: Restarts) -> tuple[Rows, Scores]:
        """The nodes that a walk reaches, ascending, and their shares of it."""
        if self.pagerank == "local":
            walked = local_pagerank(self._graph, restarts, self.damping)
            return walked.rows, walked.ranks
        ranks = pagerank(self._graph, restarts, self.damping)
        rows = np.flatnonzero(ranks)
        return rows, ranks[rows]

    def _pool(
        self, query: str, seeded: Seeded, rows: Rows, ranks: Scores, allowed: Mask | None, at_least: int
    ) -> GraphCandidates:
        if allowed is not None:
            rows, ranks = rows[allowed[rows]], ranks[allowed[rows]]
        walked: Scores = np.log(ranks + FLOOR).round(_DECIMALS)
        order = top_k_positions(walked, max(self.pool, at_least))
        rows, ranks, walked = rows[order], ranks[order], walked[order][: self.pool]
        shares = looked_up(rows, seeded.restarts.rows, seeded.restarts.weights, 0.0)
        pooled = rows[: self.pool]
        similarity, with_rewritten = self._similarities(seeded, pooled)
        terms, information = self._terms.of_query(query)
        first = int(np.argmax(walked + similarity)) if len(pooled) else 0
        pairs = links_among(self._graph, pooled, self._undirected)
        evidence = {
            "pagerank": walked,
            "fused": fused_ranks(pooled, seeded) * pairs.apart(len(pooled)),
            "similarity": with_rewritten,
            "titles": looked_up(pooled, seeded.titled_rows, seeded.titled, 0.0),
            "title_coverage": self._terms.title_shares(query, pooled),
            "named": self._terms.named(pooled),
        } | coverage_evidence(self._terms.covered(terms, pooled), information, pairs, first)
        evidence["relation"] = self._relations(query, pooled, evidence["titles"], pairs, first)
        seeds = {label: looked_up(rows, *hits, np.nan) for label, hits in seeded.scores.items()}
        return GraphCandidates(rows, ranks, shares, evidence, seeds)

    def _similarities(self, seeded: Seeded, rows: Rows) -> tuple[Scores, Scores]:
        """The similarities of rows and query, alone and with that to the rewritten query which a row answers best."""
        dense = self._open_dense
        if seeded.vector is None or dense is None:
            return np.zeros(len(rows)), np.zeros(len(rows))
        alone = best = dense.similarities(seeded.vector, rows)
        for one in seeded.rewritten:
            best = np.where(np.isin(rows, one.sources), best, np.maximum(best, dense.similarities(one.vector, rows)))
        return alone, alone + best if seeded.rewritten else alone

    def _relations(self, query: str, pooled: Rows, titles: Scores, pairs: LinkedPairs, first: int) -> Scores:
        """How each candidate stands in the relation that the query asks for, to those that it names, or else to the first."""
        named = titles >= _NAMED
        if not named.any():
            named[first : first + 1] = True
        pointing = np.flatnonzero(pairs.points & named[pairs.ones] & ~named[pairs.others])
        if len(pointing) == 0:
            return np.zeros(len(pooled))
        titled = [mention for mention in self._title_table.find(query) if np.isin(mention.rows, pooled[titles >= _NAMED]).any()]
        asked = asked_relations(query, [(mention.start, mention.end) for mention in titled])
        sources, targets = pairs.ones[pointing].tolist(), pairs.others[pointing].tolist()
        places = sorted({*sources, *targets})
        item_of = dict(zip(places, self._items.items(pooled[places]), strict=True))
        rules = self._titles()
        surfaces = {place: rules.surfaces_of(item_of[place]) for place in {*targets}}
        pairs_of = [(source, target, surfaces[target]) for source, target in zip(sources, targets, strict=True)]
        return relation_evidence(asked, {place: item_of[place] for place in {*sources}}, pairs_of, len(pooled))


def _dense_part(seeds: Mapping[str, BaseRetriever], encoder: BaseEncoder | None) -> FaissRetriever | None:
    """The retriever for similarities: a seed with this encoder if there is one, so that nothing is encoded twice."""
    dense = [seed for seed in seeds.values() if isinstance(seed, FaissRetriever) and encoder in (None, seed.encoder)]
    if dense:
        return dense[0]
    return None if encoder is None else FaissRetriever(encoder)
