"""A collection that changes, with all that links passages, and the links that an index of it should have."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from nlp_retrieval.core.index.generation import SegmentFolder, open_generation
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.link_graph.extractors import BaseLinkExtractor

from .corpora import passage, table_of

TITLES = [
    "New York", "New York City", "City of Glass", "Glass Harbour", "Heat", "Heat (film)", "heat", "Harbour", "iPod",
    "iPod nano", "Zürich", "Zurich Lake", "O'Neill", "The Glass", "U2", "東京", "", "This", "New Zürich City Lake",
]  # fmt: skip
FILLER = [
    "in",
    "near",
    "the",
    "of",
    "and",
    "-",
    ",",
    "was seen from",
    "\u2019s",
    "'s",
    "Corvin Observatory",
    "Ada Quill",
    "1984",
]

LinksByKind = dict[str, dict[tuple[str, str], float]]
"""By kind, the weights of links by the ids of source and target."""


def random_item(rng: random.Random, item_id: str) -> SearchableItem:
    """A passage that mentions, names, and is cut from others; some are empty."""
    words = [rng.choice(TITLES + FILLER) for _ in range(rng.choice([0, 3, 8, 12]))]
    words = [rng.choice([word, word, word.lower(), word.upper()]) for word in words]
    given: dict[str, object] = {}
    if rng.random() < 0.3:
        given["aliases"] = rng.sample(TITLES, 2)
    if rng.random() < 0.5:
        given["links"] = rng.choice([rng.choice(TITLES), [f"i{rng.randrange(30)}", rng.choice(TITLES).upper()]])
    if rng.random() < 0.6:
        given["parent_id"] = rng.choice(["Heat", "book", "i3"])
    return passage(rng.choice(TITLES), " ".join(words), item_id, **given)


def links_at_once(items: Sequence[SearchableItem], kinds: dict[str, BaseLinkExtractor]) -> LinksByKind:
    """The links of an index that is built at once."""
    with TemporaryDirectory() as folder:
        table = table_of(items, Path(folder))
        found = {kind: extractor.extract(table).merged(kind, len(items)) for kind, extractor in kinds.items()}
    return {
        kind: {
            (items[source].item_id, items[target].item_id): weight
            for source, target, weight in zip(
                links.sources.tolist(), links.targets.tolist(), links.weights.tolist(), strict=True
            )
        }
        for kind, links in found.items()
    }


def after(
    before: LinksByKind, live: Sequence[SearchableItem], new: Iterable[str], kinds: dict[str, BaseLinkExtractor]
) -> LinksByKind:
    """The links after an update: of new passages as if indexed at once, among the others as they were."""
    ids, fresh = {item.item_id for item in live}, set(new)
    at_once = links_at_once(live, kinds)
    expected: LinksByKind = {}
    for kind in kinds:
        kept = {pair: weight for pair, weight in before[kind].items() if set(pair) <= ids - fresh}
        expected[kind] = kept | {pair: weight for pair, weight in at_once[kind].items() if set(pair) & fresh}
    return expected


def segments_of(path: Path, name: str = "link_graph") -> list[SegmentFolder]:
    """The segments of the one retriever of that name in an index."""
    generation = open_generation(path)
    (record,) = [one for one in generation.manifest.retrievers if one.identity["name"] == name]
    return generation.checked_segments(record)


def numbered(rows: np.ndarray, live: np.ndarray) -> list[int]:
    """Rows of an index as rows of one that holds only what is there."""
    assert live[rows].all()
    return (np.cumsum(live) - 1)[rows].tolist()
