"""The tools of an agent: every call is a step, counted and limited."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from nlp_retrieval.agents.trajectory import AgentStep
from nlp_retrieval.core.context import stage
from nlp_retrieval.core.filters import Where, parse_filter
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import ConfigurationError, ItemError, RetrievalError
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count

_LONGEST = 10_000
"""Characters of a text of the agent that a step keeps."""


class BudgetSpentError(BaseException):
    """Ends an agent: its budget is spent. It is no Exception, so that an agent that goes on after errors ends too."""


class AgentTools:
    """What an agent may do for one question. Every call is a step of its trajectory, and counts.

    A call beyond the budget of steps ends the agent, wherever it is called.

    Args:
        question: its text.
        search: searches for a query: text, number of results, filter.
        steps: calls that are allowed; None for any number.
        calls: counts the calls of language models.

    Examples:
        >>> def agent(question, tools):
        ...     best = tools.search(question, k=1)[0].item
        ...     return f"{tools.open(best.item_id).content} [{best.item_id}]"
        >>> searcher = AgentSearcher(agent, Searcher(["bm25"]))
        >>> report = searcher.index(items, "index")
        >>> [hit.item.item_id for hit in searcher.search("what eats krill?")[0]]
        ['whale']
    """

    def __init__(
        self,
        question: str,
        search: Callable[[str, int, Where | None], list[RetrievalResult]],
        steps: int | None = None,
        calls: CallCounter | None = None,
    ) -> None:
        self.question = question
        self._search, self._most_steps = search, steps
        self._calls, self._counted = calls or CallCounter(), CallCounts()
        self._since = time.perf_counter()
        self._items: dict[str, SearchableItem] = {}
        self.steps: list[AgentStep] = []
        """What was done so far."""
        self.spent = False
        """Whether a call was refused because the budget was spent."""
        self.searching = 0.0
        """Seconds that searches took."""
        self.after_step: Callable[[], object] = lambda: None
        """Called after every step that succeeded: what the model answered before it was usable."""

    def search(self, query: str, k: int = 10, where: Where | None = None) -> list[RetrievalResult]:
        """Search.

        Args:
            query: its text.
            k: at most this many results.
            where: only items whose metadata match this filter are found; beside the one that all its searches have.

        Raises:
            QueryError: an argument cannot be used; it is a step with an error.
        """
        with self._step("search", query=clean_text(query)) as fields:
            fields["k"] = check_k(k)
            if where is not None:
                parse_filter(where)
                fields["where"] = dict(where)
            begin = time.perf_counter()
            with stage("search"):
                results = self._search(query, fields["k"], where)
            self.searching += time.perf_counter() - begin
            fields["results"] = tuple(hit.item.item_id for hit in results)
            self._items |= {hit.item.item_id: hit.item for hit in results}
        return results

    def open(self, item_id: str) -> SearchableItem:
        """Return an item that one of the searches has found.

        Args:
            item_id: its id.

        Raises:
            ItemError: no search has found it; it is a step with an error.
        """
        with self._step("open", item_id=clean_text(item_id)):
            if item_id not in self._items:
                raise ItemError(f"{item_id!r:.80} is the id of nothing that was found; search for it first")
        return self._items[item_id]

    def count_tokens(self, model: str, input_tokens: int, output_tokens: int) -> None:
        """Count a call of a language model that this package does not see.

        Args:
            model: ``provider/model``, as prices name it.
            input_tokens: tokens of the prompt.
            output_tokens: tokens of the answer.
        """
        count(CallCounter(model), CallCounts(calls=1, tokens_in=input_tokens, tokens_out=output_tokens))

    def results(self, cited: Sequence[str] = ()) -> list[RetrievalResult]:
        """Return the union of all results in order of first appearance, with ``agent.`` signals; ``cited`` are ids in order."""
        came: dict[str, dict[str, float]] = {}
        for number, step in enumerate(self.steps, start=1):
            for item_id in step.results:
                came.setdefault(item_id, {"agent.step": float(number)})
            if step.kind == "open" and not step.error:
                came[step.item_id].setdefault("agent.opened", float(number))
        for place, item_id in enumerate(cited, start=1):
            if item_id in came:
                came[item_id]["agent.cited"] = float(place)
        ranked = enumerate(came.items(), start=1)
        return [RetrievalResult.trusted(self._items[item_id], 1.0 / rank, signals) for rank, (item_id, signals) in ranked]

    @contextmanager
    def _step(self, kind: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """A call of the tool of this name: a step with these fields, to be completed by the block."""
        if len(self.steps) == self._most_steps:
            self.spent = True
            raise BudgetSpentError
        try:
            yield fields
        except Exception as error:
            self._add(kind, tool=kind, **fields, error=reason_of(error))
            raise
        self._add(kind, tool=kind, **fields)
        self.after_step()

    def _add(self, kind: str, **fields: Any) -> None:
        counts, now = self._calls.counts, time.perf_counter()
        used = known_tokens(counts - self._counted)
        self.steps.append(AgentStep.model_validate({"kind": kind, **fields, **used, "seconds": now - self._since}))
        self._counted, self._since = counts, now


_tools: ContextVar[AgentTools] = ContextVar("nlp_retrieval_agent_tools")


@contextmanager
def using_tools(tools: AgentTools) -> Iterator[None]:
    """Make these the tools of the agent that runs inside the block."""
    token = _tools.set(tools)
    try:
        yield
    finally:
        _tools.reset(token)


def running_tools() -> AgentTools:
    """Return the tools of the agent that runs: for functions that get no ``tools``, such as the tools of a DSPy program.

    Raises:
        ConfigurationError: no agent runs.

    Examples:
        >>> def find(query: str) -> list[str]:
        ...     return [hit.item.text for hit in running_tools().search(query)]
        >>> searcher = AgentSearcher(lambda question, tools: find(question)[0], Searcher(["bm25"]))
        >>> report = searcher.index(items, "index")
        >>> results = searcher.search("krill")
        >>> searcher.trajectories()[0].answer
        'Krill. Small animals of the Southern Ocean.'
    """
    try:
        return _tools.get()
    except LookupError:
        raise ConfigurationError("no agent runs; let an AgentSearcher call the function that calls this") from None


def known_tokens(counts: CallCounts) -> dict[str, int | None]:
    """Return tokens as fields of a step: None if no model was asked, or the server does not report them."""
    tokens = counts.tokens_in + counts.kept_tokens_in, counts.tokens_out + counts.kept_tokens_out
    return dict(zip(("input_tokens", "output_tokens"), tokens if any(tokens) else (None, None), strict=True))


def reason_of(error: Exception) -> str:
    """Return what went wrong, without secrets; with the class of an error that is not the package's."""
    text = str(error) or type(error).__name__
    return str(without_secrets(text if isinstance(error, RetrievalError) else f"{type(error).__name__}: {text}"))


def clean_text(text: object) -> str:
    """Return a text of the agent for a step: cut, and without halves of surrogate pairs."""
    shown = text if isinstance(text, str) else repr(text)
    return shown[:_LONGEST].encode("utf-8", "replace").decode()
