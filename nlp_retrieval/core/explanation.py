"""Reasons why an item was found: the start of the search, and the links from there to the item."""

from __future__ import annotations

from dataclasses import dataclass

from nlp_retrieval.core.models import SearchableItem, excerpt


@dataclass(frozen=True)
class Step:
    """One link of a chain.

    Args:
        source: the item where the step begins.
        target: the item where it ends.
        kind: registry name of the extractor that found the link, with a number if a retriever has several of this name.
        along: whether the link is in the source's text; if not, it is in the target's.
        sentence: the sentence that contains the link; empty if there is none.
        start: where the mention begins in the sentence.
        end: where it ends.

    Examples:
        >>> step = Step(items[0], items[1], "title_mention", along=True, sentence="It eats tons of Krill.", start=16, end=21)
        >>> step.sentence[step.start : step.end]
        'Krill'
    """

    source: SearchableItem
    target: SearchableItem
    kind: str
    along: bool
    sentence: str = ""
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        route = f"{name_of(self.target)}: reached from {name_of(self.source)} by {self.kind.replace('_', ' ')}"
        if not self.sentence:
            return route
        whose = "its" if self.along else "this one's"
        before, mention, after = self.sentence[: self.start], self.sentence[self.start : self.end], self.sentence[self.end :]
        return f"{route}, because {whose} text says: {before}[{mention}]{after}"


@dataclass(frozen=True, repr=False)
class Explanation:
    """The strongest chain that leads to an item.

    Args:
        item: the item found.
        origin: why the search began at the chain's first item, in words.
        steps: the links walked; empty if the search began at the item itself.
        strength: share of the walk that took this chain; comparable within one query.

    Examples:
        >>> searcher = Searcher([LinkGraphRetriever(["bm25"])])
        >>> report = searcher.index(items, "index")
        >>> (hits,) = searcher.search("krill")
        >>> searcher.explain("krill", hits)[0]["link_graph"].steps
        ()
    """

    item: SearchableItem
    origin: str
    steps: tuple[Step, ...]
    strength: float

    @property
    def first(self) -> SearchableItem:
        """The item at which the chain begins."""
        return self.steps[0].source if self.steps else self.item

    def __str__(self) -> str:
        return "\n".join([f"{name_of(self.first)}: {self.origin}", *map(str, self.steps)])

    def __repr__(self) -> str:
        route = " → ".join(excerpt(name_of(item), 40) for item in (self.first, *(step.target for step in self.steps)))
        return f"<explanation: {route}; strength {self.strength:.3g}>"

    def as_dict(self) -> dict[str, object]:
        """The explanation as plain values, items by their ids."""
        steps = [
            {
                "source": step.source.item_id,
                "target": step.target.item_id,
                "kind": step.kind,
                "along": step.along,
                "sentence": step.sentence,
                "mention": step.sentence[step.start : step.end],
            }
            for step in self.steps
        ]
        return {"first": self.first.item_id, "origin": self.origin, "strength": self.strength, "steps": steps}


def name_of(item: SearchableItem) -> str:
    """The title of an item, or its id if it has none."""
    return item.title or item.item_id
