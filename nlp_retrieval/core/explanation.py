"""Why an item was found: where the search began, and the links that led from there to the item."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from nlp_retrieval.core.models import SearchableItem, excerpt
from nlp_retrieval.core.tables import dim, html_text


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

    def _html(self) -> str:
        bounds = [0, self.start, self.end, len(self.sentence)]
        before, mention, after = (html_text(self.sentence[begin:end]) for begin, end in pairwise(bounds))
        whose = "" if self.along else dim(f"from the text of {name_of(self.target)}: ")
        sentence = f"<br>{whose}{before}<b>{mention}</b>{after}" if self.sentence else ""
        kind = self.kind.replace("_", " ")
        return f"→ <b>{html_text(name_of(self.target))}</b> {dim(f'by {kind}')}{sentence}"


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        route = " → ".join(excerpt(name_of(item), 40) for item in (self.first, *(step.target for step in self.steps)))
        return f"<explanation: {route}; strength {self.strength:.3g}>"

    def _repr_html_(self) -> str:
        lines = [f"<b>{html_text(name_of(self.first))}</b>: {html_text(self.origin)}", *(step._html() for step in self.steps)]
        indented = (f'<div style="margin-left:{1.5 * depth}em">{line}</div>' for depth, line in enumerate(lines))
        return f'<div style="text-align:left">{"".join(indented)}</div>'

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


class Explanations(list[dict[str, Explanation]]):
    """Why the results of one query were found: for each, in their order, one explanation by each retriever that can tell."""

    def _repr_html_(self) -> str:
        shown = []
        for rank, by_label in enumerate(self, start=1):
            parts = [f"{dim(label)}{explanation._repr_html_()}" for label, explanation in by_label.items()]
            name = next((name_of(explanation.item) for explanation in by_label.values()), "")
            heading = f"<p>{rank}. <b>{html_text(name)}</b></p>" if parts else f"<p>{rank}. {dim('no explanation')}</p>"
            shown.append(f'{heading}<div style="margin-left:1.5em">{"".join(parts)}</div>')
        return "".join(shown)
