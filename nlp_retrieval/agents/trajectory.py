"""What an agent did for a question: its searches, what came back, what it opened, and its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints, model_validator

from nlp_retrieval.core.models import PlainModel

StepKind = Literal["search", "open", "note", "other"]
"""What a step does: it searches, reads one item, writes down a text, or calls a tool that is none of these."""

Number = TypeVar("Number", int, float)
Id = Annotated[str, StringConstraints(min_length=1)]
_MARK = re.compile(r"[\[【]([^\[\]【】]{1,2000})[\]】]")
MOST = 10**15
"""The largest count or amount: sums of them are exact, and every file format holds them."""

_NO_BOOL = BeforeValidator(lambda given: str(given) if isinstance(given, bool) else given)  # else True counts as 1
Count = Annotated[int, Field(strict=False, ge=0, le=MOST), _NO_BOOL]
Amount = Annotated[float, Field(strict=False, ge=0, le=MOST, allow_inf_nan=False), _NO_BOOL]


class AgentStep(PlainModel):
    """One step of an agent.

    Args:
        kind: what the step does.
        tool: name of the tool, as the agent called it.
        query: text of a search.
        k: number of results that it asked for; None if unknown.
        where: its filter; None for none.
        results: ids of what came back, best first.
        item_id: what an ``open`` step read.
        text: what a note says.
        error: why the call failed; empty if it did not.
        input_tokens: tokens of the language model that led to this step; None if unknown.
        output_tokens: tokens that it wrote.
        price: what the step cost, in the currency of the caller; None if unknown.
        seconds: how long it took; None if unknown.

    Examples:
        >>> AgentStep(kind="search", query="large whales", results=("whale", "krill")).results
        ('whale', 'krill')
    """

    kind: StepKind
    tool: str = ""
    query: str = ""
    k: Count | None = None
    where: dict[str, JsonValue] | None = None
    results: tuple[Id, ...] = ()
    item_id: str = ""
    text: str = ""
    error: str = ""
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    price: Amount | None = None
    seconds: Amount | None = None

    @model_validator(mode="after")
    def _check_kind(self) -> AgentStep:
        if self.kind == "open" and not self.item_id and not self.error:
            raise ValueError('a step of kind "open" names what it read: item_id')
        return self

    @property
    def came(self) -> list[str]:
        """Ids of what the step brought: what came back, and what was read, each once."""
        read = [self.item_id] if self.kind == "open" and not self.error else []
        return list(dict.fromkeys([*self.results, *read]))

    @property
    def tokens(self) -> int | None:
        """Tokens in and out together; None if neither is known."""
        return _total([self.input_tokens, self.output_tokens])


class Trajectory(PlainModel):
    """Everything that one agent did for one question.

    Args:
        question_id: the id under which the question has gold.
        question: its text.
        agent: name of the agent; trajectories of one agent form a run.
        steps: in the order in which they happened.
        answer: the last text, empty if there is none.
        citations: ids of the items that the answer cites, in order; None if the answer's own marks say so.
        complete: False if the agent was cut off before it answered.
        input_tokens: tokens of the whole trajectory, where they are not known by step.
        output_tokens: the same for what was written.
        price: the same for what it cost.
        metadata: further values, such as the model.

    Examples:
        >>> search = AgentStep(kind="search", query="large whales", results=("whale", "krill"))
        >>> steps = (search, AgentStep(kind="open", item_id="whale"))
        >>> trajectory = Trajectory(question_id="q1", agent="one", steps=steps, answer="The blue whale [whale].")
        >>> trajectory.seen(), trajectory.opened(), trajectory.cited()
        (['whale', 'krill'], ['whale'], ['whale'])
    """

    question_id: Id
    question: str = ""
    agent: str = "agent"
    steps: tuple[AgentStep, ...] = ()
    answer: str = ""
    citations: tuple[Id, ...] | None = None
    complete: bool = True
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    price: Amount | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def searches(self) -> list[AgentStep]:
        """The steps that search."""
        return [step for step in self.steps if step.kind == "search"]

    @property
    def tokens(self) -> int | None:
        """Tokens of the whole trajectory: as given for it, or the sum over its steps; None if unknown."""
        whole = _total([self.input_tokens, self.output_tokens])
        return _total([step.tokens for step in self.steps]) if whole is None else whole

    @property
    def cost(self) -> float | None:
        """Its price: as given for it, or the sum over its steps; None if unknown."""
        return _total([step.price for step in self.steps]) if self.price is None else self.price

    @property
    def seconds(self) -> float | None:
        """How long its steps took together; None if unknown."""
        return _total([step.seconds for step in self.steps])

    def seen(self) -> list[str]:
        """Return the ids that searches returned, each once, in the order in which they came."""
        return list(dict.fromkeys(item_id for step in self.steps for item_id in step.results))

    def opened(self) -> list[str]:
        """Return the ids of what was read, each once, in order."""
        return list(dict.fromkeys(step.item_id for step in self.steps if step.kind == "open" and not step.error))

    def cited(self) -> list[str]:
        """Return the ids that the answer cites, each once, in order."""
        if self.citations is not None:
            return list(dict.fromkeys(self.citations))
        known = {*self.seen(), *self.opened()}
        return list(dict.fromkeys(cited_in(self.answer, known)))


def _total(amounts: Sequence[Number | None]) -> Number | None:
    """Return the sum of the known numbers; None if none is known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known[1:], start=known[0]) if known else None


def cited_in(text: str, known: set[str]) -> list[str]:
    """Return the ids that a text cites in brackets, of what was seen or numbers where ids are numbers."""
    numbers = any(item_id.isascii() and item_id.isdecimal() for item_id in known)
    cited: list[str] = []
    for mark in _MARK.finditer(text):
        inside = mark[1]
        parts = [inside] if inside in known else [part.strip() for part in re.split("[,;]", inside)]
        cited += [part for part in parts if part in known or (numbers and part.isascii() and part.isdecimal())]
    return cited
