"""The data that users see: items, results and why they were found, queries, gold; frozen, and known by their ids alone."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class ByKey(Mapping[str, Any]):
    """Base of dataclasses that are also read as dicts: ``passage["url"]``, ``passage.get("url")``, ``dict(passage)``.

    Examples:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Town(ByKey):
        ...     river: str
        >>> Town("Lune")["river"], Town("Lune").get("lake")
        ('Lune', None)
    """

    also: ClassVar[tuple[str, ...]] = ()
    """Properties that are read so too."""

    def __getitem__(self, key: str) -> Any:
        """Return a field by its name."""
        if key not in self._names():
            raise KeyError(f"no {key!r}; there are {', '.join(self)}")
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def to_json(self) -> str:
        """Return it as JSON, with everything that it holds."""
        return json.dumps(self, default=lambda part: dict(part) if isinstance(part, Mapping) else asdict(part))

    def _names(self) -> list[str]:
        return [*(each.name for each in fields(self)), *self.also]  # type: ignore[arg-type]


_ModelT = TypeVar("_ModelT", bound=BaseModel)


def _trusted(cls: type[_ModelT], values: dict[str, Any], fields: set[str]) -> _ModelT:
    """The same as ``model_construct``, without its loop over the fields: one search may create 20,000 models."""
    model = cls.__new__(cls)
    _set(model, "__dict__", values)
    _set(model, "__pydantic_fields_set__", fields)
    _set(model, "__pydantic_extra__", None)
    _set(model, "__pydantic_private__", None)
    return model


_set = object.__setattr__
_ITEM_FIELDS = {"item_id", "content", "metadata"}
_SHORT = 60
_RESULT_FIELDS = {"item", "score", "signals"}


class PlainModel(BaseModel):
    """A frozen model."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from scanning the whole heap repeatedly while thousands of long-lived objects are created."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class SearchableItem(PlainModel):
    """One thing that can be found: a passage, an abstract, a product description.

    Args:
        item_id: the identity of the item, not empty, unique in its corpus.
        content: the text, without the title.
        metadata: JSON values by name. By convention, ``title``, if it is a string, is the first sentence of ``text``.

    Examples:
        >>> item = SearchableItem(item_id="whale", content="It eats krill.", metadata={"title": "Blue whale", "year": 2021})
        >>> item.text
        'Blue whale. It eats krill.'
    """

    item_id: str = Field(min_length=1)
    content: str
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title in the metadata, or an empty string."""
        title = self.metadata.get("title")
        return title if isinstance(title, str) else ""

    @property
    def text(self) -> str:
        """Return the text for engines, encoders and rerankers: the title, if there is one, then the content."""
        return join_title(self.title, self.content)

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        yield "item_id", self.item_id
        yield from [("title", excerpt(self.title, _SHORT))] if self.title else []
        yield "content", excerpt(self.content, _SHORT)

    @classmethod
    def trusted(cls, item_id: str, content: str, metadata: dict[str, Any]) -> SearchableItem:
        """Build an item from values that were already validated (in an index's own file), at a tenth of the cost."""
        return _trusted(cls, {"item_id": item_id, "content": content, "metadata": metadata}, _ITEM_FIELDS)


class RetrievalResult(PlainModel):
    """One hit.

    Args:
        item: the item found.
        score: higher is better; comparable within one result list only.
        signals: the parts of the score: ``<label>.score`` and ``<label>.rank`` (from 1) of every retriever that found the
            item, ``fusion.score``, and each part of a reranker's score. A component that did not score the item has no key.

    Examples:
        >>> searcher = Searcher([Bm25Retriever()])
        >>> report = searcher.index(items, "index")
        >>> ((best, *_),) = searcher.search("krill", k=2)
        >>> best.item.item_id, round(best.score, 3), best.signals["bm25.rank"]
        ('krill', 0.25, 1.0)
    """

    item: SearchableItem
    score: float
    signals: dict[str, float] = Field(default_factory=dict)

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        yield "item", self.item
        yield "score", float(f"{self.score:.4g}")

    @classmethod
    def trusted(cls, item: SearchableItem, score: float, signals: dict[str, float]) -> RetrievalResult:
        """Build a result from values already checked by the engine's contract."""
        return _trusted(cls, {"item": item, "score": score, "signals": signals}, _RESULT_FIELDS)


def excerpt(text: str, length: int = 160) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text[: 8 * length].split())
    return line if len(line) <= length else f"{line[:length].rsplit(' ', 1)[0]} …"


def join_title(title: str, content: str) -> str:
    """Return a title and a content as one text, with the title, if there is one, as a sentence of its own.

    Examples:
        >>> join_title("Blue whale", "It eats krill.")
        'Blue whale. It eats krill.'
    """
    if not title:
        return content
    return f"{title} {content}" if title[-1] in ".?!:" else f"{title}. {content}"


# Reasons why an item was found: the start of the search, and the links from there to the item.


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


SYNTHETIC = "synthetic-"
"""Beginning of the ids of queries that a model wrote; unlike metadata, ids are in every run, qrels and report."""


class Query(PlainModel):
    """A query of a benchmark.

    Args:
        query_id: unique in its query set.
        text: the question or claim.
        family: shared by queries written from the same source (HoVer's ``hpqa_id``); statistics resample families.
        metadata: JSON values by name: number of hops, label, type.

    Examples:
        >>> Query(query_id="q1", text="who eats krill", metadata={"country": "Norway"})
        Query(query_id='q1', text='who eats krill', family=None, metadata={'country': 'Norway'})
    """

    query_id: str = Field(min_length=1)
    text: str
    family: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def is_synthetic(self) -> bool:
        """Return whether a model wrote it: its metadata say ``synthetic: true``, or its id begins with "synthetic-"."""
        said = str(self.metadata.get("synthetic", "")).lower() in ("true", "yes", "1")
        return said or self.query_id.startswith(SYNTHETIC)


class Gold(PlainModel):
    """The expected results for one query.

    Args:
        query_id: the query.
        relevance: grade by item id or by title; a grade above 0 is relevant, nDCG uses the grade as gain.
        by: kind of the keys of ``relevance``. Titles are compared in normalised form.

    Examples:
        >>> Gold(query_id="q2", relevance={"Blue whale": 1}, by="title")
        Gold(query_id='q2', relevance={'Blue whale': 1}, by='title')
    """

    query_id: str = Field(min_length=1)
    relevance: dict[str, int]
    by: Literal["item_id", "title"] = "item_id"


Fact = tuple[str, int]
"""A sentence: the title of its passage (the item id if there is none) and its number in it, counted from 0 as in HotpotQA."""


class Answer(PlainModel):
    """An answer to one question; it may also say that there is no answer.

    Args:
        text: a few words; empty if there is no answer.
        reasoning: why, in the answerer's words.
        passages: ids of the items that it cites, in order, each once.
        facts: the sentences that it cites, in order, each once.
        dropped: how many citations named a passage or a sentence that the answerer was not given.
        failed: whether there is no answer because the answerer failed, and not because it found none.

    Examples:
        >>> Answer(text="krill", passages=["whale"]).passages
        ['whale']
    """

    text: str
    reasoning: str = ""
    passages: list[str] = Field(default_factory=list)
    facts: list[Fact] = Field(default_factory=list)
    dropped: int = Field(default=0, ge=0)
    failed: bool = False
