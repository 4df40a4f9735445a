"""Agents as configurations of a benchmark: their searches are counted, limited and kept, and what they found is a ranking."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Annotated, Any
from uuid import uuid4

from pydantic import Field

from nlp_retrieval.agents.tools import AgentTools, BudgetSpentError, clean_text, known_tokens, reason_of, using_tools
from nlp_retrieval.agents.trajectory import Trajectory
from nlp_retrieval.core.components.component import Config, canonical_json, codes_in
from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.context import search_context, suppress_empty_notes
from nlp_retrieval.core.files.frames import Queries, queries_of, texts_of
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.models import Query, RetrievalResult
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.core.search.base_searcher import BaseSearcher, OpenedRetrievers
from nlp_retrieval.core.search.retriever import Stages, using_stages
from nlp_retrieval.core.tables import RankedLists
from nlp_retrieval.errors import ConfigurationError, EngineError, RetrievalWarning
from nlp_retrieval.lm.counting import record_calls
from nlp_retrieval.lm.endpoint import side_by_side
from nlp_retrieval.lm.language_model import LanguageModel

_Key = tuple[str, str]
"""Id of a question, and its filter."""

MOST_KEPT = 10_000
"""Trajectories that a searcher keeps in memory; older ones are dropped."""


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
        self._trajectories: dict[_Key, Trajectory] = {}
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

    def to_config(self) -> Config:
        """Raise an error: an agent in Python is in no file.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError(f"the agent {self._label!r} is Python code, which no file of settings can hold")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the agent, as far as that can be pickled."""
        return partial(type(self), **self._arguments), (), {"local_only": self.local_only} | self.extra_state()

    def _answer(self, question: str, tools: AgentTools) -> AgentAnswer:
        call = (
            partial(self.agent, **self._inputs(question, tools)) if self._is_program else partial(self.agent, question, tools)
        )
        if self.lm is None:
            return _as_answer(call())
        from nlp_retrieval.lm.engine import answers_kept_if_good
        from nlp_retrieval.lm.programs import fingerprint_of_program

        program = fingerprint_of_program(self.agent) if self._is_program else f"agent {self._label}"
        with answers_kept_if_good(program) as scope:
            tools.after_step = scope.keep
            answer = _as_answer(call())
            scope.keep()
            return answer

    def _inputs(self, question: str, tools: AgentTools) -> dict[str, Any]:
        """The inputs of a DSPy program."""
        program: Any = self.agent
        kinds = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        names = [name for name, p in list(signature(type(program).forward).parameters.items())[1:] if p.kind not in kinds]
        names = names or list(getattr(getattr(program, "signature", None), "input_fields", {})) or ["question"]
        return {names[0]: question} | ({"tools": tools} if "tools" in names else {})

    def trajectories(self, queries: Queries | None = None) -> list[Trajectory]:
        """Return what the agent did for each question that it was asked: the last 10,000 of them.

        A question that was asked as a text has this text as its id, unless a benchmark asked it.
        """
        with self._keeping:
            kept = list(self._trajectories.values())
        if queries is None:
            return kept
        by_question = {trajectory.question: trajectory for trajectory in kept}
        return [
            by_question[query.text].model_copy(update={"question_id": query.query_id})
            for query in queries_of(queries)
            if query.text in by_question
        ]

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
        searcher = self._searching()
        searcher.opened.items.allowed(where)  # a filter that does not match is an error here, and none of the agent's
        names = [self._id_of.get(question) or question or "-" for question in questions] if _are_texts(queries) else ids
        asking: AbstractContextManager[object] = nullcontext()
        at_once = 1
        if self.lm is not None:
            from nlp_retrieval.lm.asking import using

            asking, at_once = using(self.lm), self.lm.endpoint.calls_at_once
        what = f"agent {self._label}"
        with suppress_empty_notes(), using_stages(Stages()), asking, progress(what, len(ids)) as advance:

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

        begin, failure, reason, answered = time.perf_counter(), None, "", AgentAnswer("")
        with record_calls() as calls:
            tools = AgentTools(question, search, self.steps, calls)
            try:
                with using_tools(tools):
                    answered = self._answer(question, tools)
            except BudgetSpentError:
                reason = "its budget is spent"
            except Exception as error:
                failure, reason = error, reason_of(error)
        if (seconds := search_context().seconds) is not None:
            seconds["agent"] = seconds.get("agent", 0.0) + time.perf_counter() - begin - tools.searching
        metadata: dict[str, Any] = {"error": clean_text(reason)} if reason else {}
        metadata |= {"where": where} if where is not None else {}
        cited = None if answered.citations is None else filter(None, map(clean_text, answered.citations))
        values = {
            "question_id": question_id,
            "question": question,
            "agent": self._label,
            "steps": tuple(tools.steps),
            "answer": clean_text(answered.text),
            "citations": None if cited is None else tuple(cited),
            "complete": not (tools.spent or reason),
            **known_tokens(calls.counts),
            "metadata": metadata,
        }
        trajectory = Trajectory.model_validate(values)
        with self._keeping:
            self._trajectories.pop(_key(trajectory), None)
            self._trajectories[_key(trajectory)] = trajectory
            if len(self._trajectories) > MOST_KEPT:
                del self._trajectories[next(iter(self._trajectories))]
        return _Ran(trajectory, tools.results(trajectory.cited()), failure, tools.spent)

    def _report(self, runs: Sequence[_Ran]) -> None:
        """Say for how many questions the agent did not come to an end, other than by its budget."""
        failed = [ran.trajectory for ran in runs if not (ran.spent or ran.trajectory.complete)]
        if not failed:
            return
        said = f"the agent {self._label!r} failed for {len(failed):,} of {len(runs):,} questions (the first: "
        said += f"{failed[0].question!r:.80}: {failed[0].metadata['error']})"
        if len(runs) > 1 and all(ran.failure for ran in runs):
            raise EngineError(said) from runs[0].failure
        warnings.warn(f"{said}; their trajectories are incomplete", RetrievalWarning, stacklevel=3)

    def _searching(self) -> BaseSearcher:
        """Return the searcher on the generation open now; a later refresh does not affect it."""
        searcher = self.searcher.__copy__()
        searcher._opened = self.open_retrievers()
        return searcher

    def open_retrievers(self) -> OpenedRetrievers:
        if self._opened is None and self._opens is None and self.searcher._opened is not None:
            self._opened = self.searcher._opened
        return super().open_retrievers()


def _key(trajectory: Trajectory) -> _Key:
    where = trajectory.metadata.get("where")
    return trajectory.question_id, "" if where is None else canonical_json(where)


@dataclass(frozen=True)
class _Ran:
    trajectory: Trajectory
    results: list[RetrievalResult]
    failure: Exception | None
    spent: bool


def _are_texts(queries: Queries) -> bool:
    return isinstance(queries, str) or (isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries))


def _as_answer(returned: Any) -> AgentAnswer:
    if returned is None or isinstance(returned, str | AgentAnswer):
        return returned if isinstance(returned, AgentAnswer) else AgentAnswer(returned or "")
    text, citations = getattr(returned, "answer", returned), getattr(returned, "citations", None)
    if isinstance(citations, str) or not (isinstance(text, str | None) and isinstance(citations, Sequence | None)):
        raise EngineError(
            f"the agent returned {returned!r:.80}; it returns a text, an AgentAnswer, or an object with an answer"
        )
    return AgentAnswer(text or "", citations)
