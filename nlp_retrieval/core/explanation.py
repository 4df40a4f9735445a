"""Why an item was found: where the search began, and the links that led from there to the item."""

from __future__ import annotations

from dataclasses import dataclass

from nlp_retrieval.core.models import SearchableItem


@dataclass(frozen=True)
class Step:
    """One link of a chain.

    Args:
        source: the item that the step leaves.
        target: the item that it reaches.
        kind: registry name of the extractor that found the link, with a number if a retriever has several of this name.
        along: whether the source's text shows the link; if not, the target's does.
        sentence: the sentence that shows the link; empty where none does.
        start: where the mention begins in the sentence.
        end: where it ends.
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
        return f"{route}, because {whose} text says: {self.marked('[', ']')}"

    def marked(self, before: str, after: str) -> str:
        """The sentence, with marks around the mention."""
        start, end = self.start, self.end
        return f"{self.sentence[:start]}{before}{self.sentence[start:end]}{after}{self.sentence[end:]}"


@dataclass(frozen=True)
class Explanation:
    """The strongest chain that leads to an item.

    Args:
        item: what was found.
        origin: why the search began at the chain's first item, in words.
        steps: the links walked; none where the search began at the item itself.
        strength: share of the walk that took this chain; compares explanations of one query.
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
    """The title of an item, or its id where it has none."""
    return item.title or item.item_id
