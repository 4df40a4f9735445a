"""A link graph that is updated in place: what it knows after every change, compared with what is found at once."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from soaking import Figures, mostly_soaked

from nlp_retrieval import (
    Bm25Retriever,
    LinkGraphRetriever,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.retrievers import Hyperlinks, SharedEntities, TitleMentions
from nlp_retrieval.retrievers.link_graph.extractors import BaseLinkExtractor
from nlp_retrieval.retrievers.link_graph.graph import open_graph
from nlp_retrieval.retrievers.link_graph.tables import PassageTerms, TitleTable
from retrievers.link_graph.changing import TITLES, LinksByKind, after, links_at_once, numbered, random_item, segments_of
from retrievers.link_graph.corpora import table_of

KINDS: dict[str, BaseLinkExtractor] = {
    "title_mentions": TitleMentions(rarity=0.0, max_shared=5, min_characters=2),
    "shared_entities": SharedEntities(max_passages=4),
    "hyperlinks": Hyperlinks(max_shared=4),
    "title_mentions-2": TitleMentions(aliases="none", rarity=0.0),
}
BM25 = Bm25Retriever()
QUERIES = ["New York City heat", "Who saw Zürich from O'Neill's harbour?", "ipod nano of glass", "Corvin Observatory in 1984"]


def searcher() -> Searcher:
    return Searcher([LinkGraphRetriever([BM25], list(KINDS.values()))])


def links_of_index(path: Path) -> LinksByKind:
    graph, items = open_graph(segments_of(path)), open_generation(path).items
    ids = items.ids()
    return {
        kind: {
            (ids[source], ids[target]): weight
            for source, target, weight in zip(*(column.tolist() for column in columns), strict=True)
        }
        for kind, columns in ((kind, (one.sources, one.targets, one.weights)) for kind, one in graph.links().items())
    }


def ids_from(path: Path, first_row: int) -> set[str]:
    """The items of a row and those behind it."""
    items = open_generation(path).items
    return {item_id for item_id, row in zip(items.ids(), items.find(items.ids()).tolist(), strict=True) if row >= first_row}


def same_links(found: LinksByKind, expected: LinksByKind) -> None:
    assert found.keys() == expected.keys()
    for kind, links in expected.items():
        assert found[kind] == pytest.approx(links, rel=1e-6), kind


def same_tables(path: Path, live: list[SearchableItem], folder: Path) -> None:
    """Titles and terms are those of the items that are there, as if they had been indexed at once."""
    segments = segments_of(path)
    mask = np.concatenate([np.ones(len(one), bool) if one.live is None else one.live for one in segments])
    folder.mkdir()
    table = table_of(live, folder)
    PassageTerms.of(table).write(folder)
    titles = TitleTable.of(KINDS["title_mentions"].surfaces(table))  # type: ignore[attr-defined]
    terms, known, at_once = PassageTerms.open_all(segments), TitleTable.open_all(segments), titles
    plain = PassageTerms.open_all([type(segments[0])(folder, 0, len(live))])
    for query in [*QUERIES, " and ".join(TITLES)]:
        found = [(numbered(one.rows, mask), one.start, one.end) for one in known.find(query)]
        assert found == [(one.rows.tolist(), one.start, one.end) for one in at_once.find(query)]
        (hashes, shares), (plain_hashes, plain_shares) = terms.of_query(query), plain.of_query(query)
        assert hashes.tolist() == plain_hashes.tolist()
        assert shares.tolist() == plain_shares.tolist()
        covered = terms.covered(hashes, np.flatnonzero(mask))
        assert covered.tolist() == plain.covered(hashes, np.arange(len(live))).tolist()


@pytest.mark.parametrize("auto_compact", mostly_soaked([True, False]))
@pytest.mark.filterwarnings("ignore::nlp_retrieval.errors.RetrievalWarning")
def test_links_titles_and_terms_after_every_change_are_those_that_the_documentation_says(
    auto_compact: bool, tmp_path: Path, effort: int, figures: Figures
) -> None:
    n_changes = n_joined = 0
    both_ways: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for seed in range(3 * effort):
        rng, path = random.Random(seed), tmp_path / f"index-{seed}"
        live = [random_item(rng, f"i{number}") for number in range([25, 5, 1][seed % 3])]
        index = searcher()
        index.index(live, path)
        expected = links_at_once(live, KINDS)
        for change in range(6):
            first_folder = segments_of(path)[0].folder
            n_segments = len(segments_of(path))
            deleting = len(live) > 2 and rng.random() < 0.4
            if deleting:
                gone = rng.sample([item.item_id for item in live], rng.randrange(1, min(len(live), 5)))
                index.delete(gone, auto_compact=auto_compact)
                new: list[SearchableItem] = []
                live = [item for item in live if item.item_id not in gone]
            else:
                new = [random_item(rng, f"i{number}") for number in rng.sample(range(40), rng.choice([1, 1, 3]))]
                index.update(new, auto_compact=auto_compact)
                ids = {item.item_id for item in new}
                live = [*(item for item in live if item.item_id not in ids), *new]
            n_changes += 1
            segments = segments_of(path)
            joined = len(segments) < n_segments + bool(new)
            fresh = ids_from(path, segments[-1].first_row) if joined else {item.item_id for item in new}
            all_joined = segments[0].folder != first_folder
            expected = links_at_once(live, KINDS) if all_joined else after(expected, live, fresh, KINDS)
            old = {item.item_id for item in live} - fresh
            for kind, links in expected.items():
                both_ways[kind] += [(source in old) - (target in old) for source, target in links]
            n_joined += joined and len(segments) > 1
            same_links(links_of_index(path), expected)
            same_tables(path, live, tmp_path / f"plain-{seed}-{change}")
        index.compact()
        same_links(links_of_index(path), links_at_once(live, KINDS))
        same_tables(path, live, tmp_path / f"plain-{seed}")
    assert n_joined > 0 or not auto_compact
    found_ways = {kind: set(found) - {0} for kind, found in both_ways.items()}
    undirected = {"shared_entities"}
    assert found_ways == {kind: {1} if kind in undirected else {1, -1} for kind in KINDS}
    how = "segments joined on the way" if auto_compact else "segments kept apart"
    figures.add("Live updates", f"link_graph: changes, links compared with those found at once ({how})", n_changes, n_changes)
