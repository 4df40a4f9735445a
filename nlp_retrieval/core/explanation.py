"""Reasons why an item was found: the start of the search and the links from there to the item, or the terms that scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from nlp_retrieval.core.models import SearchableItem, excerpt
from nlp_retrieval.core.tables import html_table

_TERMS_SHOWN = 5


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
        return f"{route}, because {whose} text says: {self.marked('[', ']')}"

    def marked(self, before: str, after: str) -> str:
        """The sentence, with marks around the mention."""
        start, end = self.start, self.end
        return f"{self.sentence[:start]}{before}{self.sentence[start:end]}{after}{self.sentence[end:]}"


@dataclass(frozen=True)
class TermScore:
    """Contribution of one query term to the score of an item."""

    term: str
    weight: float
    held: float
    fed_back: float = 0.0

    @property
    def score(self) -> float:
        """Return the term's contribution."""
        return self.weight * self.held

    @property
    def is_added(self) -> bool:
        """Return whether the term comes only from feedback passages."""
        return 0 < self.fed_back == self.weight


@dataclass(frozen=True, repr=False)
class Explanation:
    """The strongest chain that leads to an item.

    Args:
        item: the item found.
        origin: why the search began at the chain's first item, in words.
        steps: the links walked; empty if the search began at the item itself.
        strength: share of the walk that took this chain; comparable within one query.
        terms: terms of the query, if the score is the sum of their contributions.

    Examples:
        >>> searcher = Searcher([Bm25Retriever(feedback="rm3", fb_docs=1)])
        >>> report = searcher.index(items, "index")
        >>> (hits,) = searcher.search("krill")
        >>> explanation = searcher.explain("krill", hits)[0]["bm25"]
        >>> [term.term for term in explanation.terms]
        ['krill']
    """

    item: SearchableItem
    origin: str
    steps: tuple[Step, ...]
    strength: float
    terms: tuple[TermScore, ...] = ()

    @classmethod
    def by_terms(cls, label: str, item: SearchableItem, terms: Sequence[TermScore]) -> Explanation | None:
        """Explain a score by all terms of the query, highest weight first; None if the item has none of them."""
        ordered = sorted(terms, key=lambda term: (-term.score, -term.weight, term.term))
        contained = [term for term in ordered if term.held > 0]
        if not contained:
            return None
        not_shown = contained[_TERMS_SHOWN:]
        shown = [_term_text(term) for term in contained[:_TERMS_SHOWN]]
        if not_shown:
            shown.append(f"{len(not_shown)} more {sum(term.score for term in not_shown):.3g}")
        origin = f"{label} scores {sum(term.score for term in contained):.4g} by the terms {', '.join(shown)}"
        return cls(item, origin, (), 1.0, tuple(ordered))

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
        values = {"first": self.first.item_id, "origin": self.origin, "strength": self.strength, "steps": steps}
        return values | {"terms": [asdict(term) for term in self.terms]} if self.terms else values


def _term_text(term: TermScore) -> str:
    added = " added to" if term.is_added else " in"
    raised = f", {term.fed_back:.3g} of it fed back," if 0 < term.fed_back < term.weight else ""
    return f"{term.term!r} {term.score:.3g} ({term.weight:.3g}{added} the query{raised} x {term.held:.3g} in the passage)"


def name_of(item: SearchableItem) -> str:
    """The title of an item, or its id if it has none."""
    return item.title or item.item_id


class Explanations(list[dict[str, Explanation]]):
    """Explanations for the results of one query: for each result, one from every retriever that can explain it.

    Examples:
        >>> searcher = Searcher([Bm25Retriever(feedback="rm3", fb_docs=1)])
        >>> report = searcher.index(items, "index")
        >>> (hits,) = searcher.search("krill")
        >>> explanations = searcher.explain("krill", hits)
        >>> len(explanations) == len(hits), list(explanations[0])
        (True, ['bm25'])
    """

    def _repr_html_(self) -> str:
        reasons = [(rank, label, one) for rank, by_label in enumerate(self, start=1) for label, one in by_label.items()]
        return html_table(
            ["rank", "by", "item", "why"], [[str(rank), label, name_of(one.item), str(one)] for rank, label, one in reasons]
        )
