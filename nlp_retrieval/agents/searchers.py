"""Agents as configurations of a benchmark: their searches are counted, limited and kept, and what they found is a ranking."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Annotated, Any
from uuid import uuid4

from pydantic import Field

from nlp_retrieval.agents.trajectory import AgentStep, Trajectory
from nlp_retrieval.core.components.component import Config, canonical_json, codes_in
from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.context import changed_context, search_context, stage, suppress_empty_notes
from nlp_retrieval.core.files.frames import Queries, are_texts, texts_of
from nlp_retrieval.core.filters import Where, parse_filter
from nlp_retrieval.core.models import Query, RetrievalResult, SearchableItem
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.retriever import OpenedRetrievers, Stages
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.core.tables import RankedLists
from nlp_retrieval.errors import ConfigurationError, EngineError, ItemError, RetrievalError, RetrievalWarning
from nlp_retrieval.lm.counting import CallCounter, CallCounts, count, record_calls
from nlp_retrieval.lm.endpoint import side_by_side
from nlp_retrieval.lm.language_model import LanguageModel

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


@dataclass(frozen=True)
class AgentAnswer:
    """What an agent answers.

    Args:
        text: the answer; empty if there is none.
        citations: ids of the items that it cites, in order; None if the marks in the text say so.

    Examples:
        >>> AgentAnswer("Krill.", ["whale"]).citations
        ['whale']
    """

    text: str
    citations: Sequence[str] | None = None


Label = Annotated[str, Field(min_length=1)]
Limit = Annotated[int, Field(ge=1)]


class AgentSearcher(BaseSearcher):
    """Any agent as a searcher, for benchmarks: a function, or a DSPy program, with a searcher for its tools.

    An agent is called as ``agent(question, tools)``, see :class:`AgentTools`. It returns its answer as a text, as an
    :class:`AgentAnswer`, or as an object with ``answer`` and perhaps ``citations``; None is no answer. A DSPy module is called
    with the question as its first input; its tools are functions that call :func:`running_tools`. With ``lm``, DSPy programs
    ask this model: answers that led to a step or to the end are kept on disk, so that an interrupted benchmark goes on without
    paying for them again, and all calls are counted.

    An agent that raises an error leaves an incomplete trajectory, with a warning.

    Args:
        agent: the agent; with ``lm`` it is called from several threads.
        searcher: what its searches ask.
        lm: the language model of its DSPy programs.
        steps: most calls of tools per question; None for any number.
        label: name of the agent in trajectories. Timings of a benchmark are used again under a label: give one only where it
            says all that decides what the agent does. By default the name of the function or class.

    Examples:
        >>> def twice(question, tools):
        ...     tools.search(question)
        ...     tools.search("snow", k=1)
        >>> searcher = AgentSearcher(twice, Searcher(["bm25"]), steps=5)
        >>> report = searcher.index(items, "index")
        >>> (hits,) = searcher.search("krill")
        >>> [(hit.item.item_id, hit.signals) for hit in hits]
        [('krill', {'agent.step': 1.0}), ('whale', {'agent.step': 1.0}), ('fox', {'agent.step': 2.0})]
        >>> [step.query for step in searcher.trajectories()[0].searches]
        ['krill', 'snow']
    """

    name = "agent"
    only_in_memory = True

    def __init__(
        self,
        agent: Callable[..., Any],
        searcher: BaseSearcher | ByName,
        lm: LanguageModel | ByName | None = None,
        steps: Limit | None = None,
        label: Label | None = None,
    ) -> None:
        resolved = resolve_components(self, AgentSearcher, searcher=searcher, lm=lm)
        self.agent = agent
        self.lm: LanguageModel | None = resolved["lm"]
        self._is_program = hasattr(agent, "named_predictors")
        self._label = label or str(getattr(agent, "__name__", type(agent).__name__))
        self._own = "" if label else uuid4().hex
        self.searcher: BaseSearcher = resolved["searcher"]
        self.steps = steps
        self.retrievers = self.searcher.retrievers
        self._opened, self._opens = self.searcher._opened, self.searcher._opens
        self._trajectories: dict[str, Trajectory] = {}
        self._keeping = Lock()
        self._id_of: dict[str, str] = {}

    @property
    def config(self) -> Config:
        """All settings as plain values, with the label for the agent, and a text of its own for one without a label."""
        config = super().config
        del config["label"]
        return config | {"agent": self._label} | ({"object": self._own} if self._own else {})

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the whole configuration."""
        whole: Config = {"config": self.config, "searcher": self.searcher.fingerprint}
        whole |= {"codes": codes} if (codes := codes_in(self)) else {}
        return hashlib.sha256(canonical_json(whole).encode()).hexdigest()

    @property
    def stages(self) -> list[str]:
        """The agent itself with its language models, its searches, and the stages of these."""
        return ["agent", "search"]

    def extra_state(self) -> dict[str, Any]:
        return {"_opens": super().extra_state()["_opens"] or self.searcher.extra_state()["_opens"]}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the agent, as far as that can be pickled."""
        return partial(type(self), **self._arguments), (), {"local_only": self.local_only} | self.extra_state()

    def _answer(self, question: str, tools: AgentTools) -> AgentAnswer:
        inputs = self._inputs(question, tools) if self._is_program else {}
        call = partial(self.agent, **inputs) if inputs else partial(self.agent, question, tools)
        if self.lm is None:
            return _as_answer(call())
        from nlp_retrieval.lm.engine import answers_kept_if_good
        from nlp_retrieval.lm.programs import fingerprint_of_program

        program = fingerprint_of_program(self.agent) if self._is_program else f"agent {self._label}"
        with answers_kept_if_good(program) as keep:
            tools.after_step = keep
            answer = _as_answer(call())
            keep()
            return answer

    def _inputs(self, question: str, tools: AgentTools) -> dict[str, Any]:
        """The inputs of a DSPy program."""
        program: Any = self.agent
        kinds = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        names = [name for name, p in list(signature(type(program).forward).parameters.items())[1:] if p.kind not in kinds]
        names = names or list(getattr(getattr(program, "signature", None), "input_fields", {})) or ["question"]
        return {names[0]: question} | ({"tools": tools} if "tools" in names else {})

    def trajectories(self) -> list[Trajectory]:
        """Return what the agent last did for each question that it was asked.

        A question that was asked as a text has this text as its id, unless a benchmark asked it.
        """
        with self._keeping:
            return list(self._trajectories.values())

    def expect(self, queries: Sequence[Query]) -> None:
        """Take over the ids of questions that are going to be asked as texts."""
        self._id_of = {query.text: query.query_id for query in reversed(queries)}

    def search(self, queries: Queries, k: int = 10, where: Where | None = None) -> RankedLists:
        """Let the agent answer questions, and return what its searches found.

        Raises:
            QueryError: a question is not a string, k is not a positive integer, or the filter does not match the items.
            IndexMissingError: no index was opened.
            EngineError: the agent failed for each of several questions.
        """
        (ids, questions), cut = texts_of(queries), check_k(k)
        searcher = self.searcher.__copy__()
        searcher._opened = self.open_retrievers()  # the generation open now; a later refresh does not affect it
        searcher.opened.items.allowed(where)  # a filter that does not match is an error here, and none of the agent's
        names = [self._id_of.get(question) or question or "-" for question in questions] if are_texts(queries) else ids
        asking: AbstractContextManager[object] = nullcontext()
        at_once = 1
        if self.lm is not None:
            from nlp_retrieval.lm.asking import using

            asking, at_once = using(self.lm), self.lm.endpoint.calls_at_once
        what = f"agent {self._label}"
        with suppress_empty_notes(), changed_context(stages=Stages()), asking, progress(what, len(ids)) as advance:

            def run(part: tuple[str, str], _: Callable[[], bool]) -> _Ran:
                ran = self._run(part[0], part[1], searcher, where)
                advance(1)
                return ran

            runs = side_by_side(run, list(zip(names, questions, strict=True)), at_once)
        self._report(runs)
        return RankedLists(questions, (ran.results[:cut] for ran in runs), ids)

    def _run(self, question_id: str, question: str, searcher: BaseSearcher, where: Where | None) -> _Ran:
        def search(query: str, k: int, own: Where | None) -> list[RetrievalResult]:
            both: Where | None = {"and": [where, own]} if where is not None and own is not None else where or own
            (results,) = searcher.search([query], k, both)
            return results

        begin, failure, answered = time.perf_counter(), None, AgentAnswer("")
        with record_calls() as calls:
            tools = AgentTools(question, search, self.steps, calls)
            try:
                with using_tools(tools):
                    answered = self._answer(question, tools)
            except BudgetSpentError:
                pass
            except Exception as error:
                failure = None if tools.spent else error
        if (seconds := search_context().seconds) is not None:
            seconds["agent"] = seconds.get("agent", 0.0) + time.perf_counter() - begin - tools.searching
        reason = "its budget is spent" if tools.spent else "" if failure is None else clean_text(reason_of(failure))
        metadata: dict[str, Any] = {"error": reason} if reason else {}
        metadata |= {"where": where} if where is not None else {}
        cited = None if answered.citations is None else filter(None, map(clean_text, answered.citations))
        values = {
            "question_id": question_id,
            "question": question,
            "agent": self._label,
            "steps": tuple(tools.steps),
            "answer": clean_text(answered.text),
            "citations": None if cited is None else tuple(cited),
            "complete": not reason,
            **known_tokens(calls.counts),
            "metadata": metadata,
        }
        trajectory = Trajectory.model_validate(values)
        with self._keeping:
            self._trajectories.pop(question_id, None)
            self._trajectories[question_id] = trajectory
        return _Ran(trajectory, tools.results(trajectory.cited()), failure)

    def _report(self, runs: Sequence[_Ran]) -> None:
        """Say for how many questions the agent did not come to an end, other than by its budget."""
        failed = [ran for ran in runs if ran.failure is not None]
        if not failed:
            return
        first = failed[0].trajectory
        said = f"the agent {self._label!r} failed for {len(failed):,} of {len(runs):,} questions (the first: "
        said += f"{first.question!r:.80}: {first.metadata['error']})"
        if len(runs) > 1 and len(failed) == len(runs):
            raise EngineError(said) from failed[0].failure
        warnings.warn(f"{said}; their trajectories are incomplete", RetrievalWarning, stacklevel=3)

    def open_retrievers(self) -> OpenedRetrievers:
        if self._opened is None and self._opens is None and self.searcher._opened is not None:
            self._opened = self.searcher._opened
        return super().open_retrievers()


@dataclass(frozen=True)
class _Ran:
    trajectory: Trajectory
    results: list[RetrievalResult]
    failure: Exception | None


def _as_answer(returned: Any) -> AgentAnswer:
    if returned is None or isinstance(returned, str | AgentAnswer):
        return returned if isinstance(returned, AgentAnswer) else AgentAnswer(returned or "")
    text, citations = getattr(returned, "answer", returned), getattr(returned, "citations", None)
    if isinstance(citations, str) or not (isinstance(text, str | None) and isinstance(citations, Sequence | None)):
        raise EngineError(f"the agent returned {returned!r:.80}; return a text, an AgentAnswer, or an object with an answer")
    return AgentAnswer(text or "", citations)


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
