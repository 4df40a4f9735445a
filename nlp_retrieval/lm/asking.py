"""Asking a DSPy program; a question without a usable answer is counted and never raises an error.

A model's answer may have the wrong form: the caller's ``read`` repairs what it can and returns None for the rest. Only answers
that could be read are stored on disk.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from nlp_retrieval.core.context import add_note
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.lm.counting import CallCounts, count
from nlp_retrieval.lm.endpoint import side_by_side
from nlp_retrieval.lm.engine import CallLimitError, NoTextError, answers_kept_if_good, dspy
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.programs import fingerprint_of_program
from nlp_retrieval.lm.reading import LONGEST_ANSWER, read_object

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_errors = dspy.utils.exceptions
_ABOUT_THIS_QUESTION = (_errors.LMInvalidRequestError, _errors.LMCollectionLimitError, _errors.LMStreamAssemblyError)
_FOR_GOOD = (
    CallLimitError,
    _errors.LMAuthError,
    _errors.LMBillingError,
    _errors.LMConfigurationError,
    _errors.LMUnsupportedModelError,
    _errors.LMUnsupportedFeatureError,
)
_GIVE_UP_AFTER = 10


@dataclass(frozen=True)
class Outcome(Generic[T_co]):
    """The result of a question.

    Args:
        value: the value read from the answer; None without a usable answer.
        reason: why there is no value.
        endpoint_failed: whether the endpoint is to blame, rather than this question.
        for_good: whether asking again would be useless.

    Examples:
        >>> Outcome("krill").value, Outcome(None, reason="no answer").reason
        ('krill', 'no answer')
    """

    value: T_co | None
    reason: str = ""
    endpoint_failed: bool = False
    for_good: bool = False


@contextmanager
def using(lm: LanguageModel | None) -> Iterator[None]:
    """Make DSPy programs inside the block ask this model, or its copy with which an optimiser draws samples; once a question.

    None means the model of DSPy's current settings.

    Examples:
        >>> import dspy
        >>> program = dspy.Predict("question -> answer")
        >>> with using(LanguageModel("openai/gpt-4o-mini")):  # doctest: +SKIP
        ...     program(question="What do whales eat?")
    """
    lm = current_model(lm)
    asked = dspy.settings.lm if lm.made(dspy.settings.lm) else lm.dspy_lm()
    # no second call in JSON by the adapter: an answer that does not parse is repaired here or discarded
    with dspy.context(adapter=_Adapter(use_json_adapter_fallback=False), disable_history=True, lm=asked):
        yield


def current_model(lm: Any) -> LanguageModel:
    """Return a model or client as a language model; for None, the model of DSPy's current settings.

    Args:
        lm: a language model, or a client as :meth:`LanguageModel.of_client` takes it.

    Raises:
        ConfigurationError: it is none, or there is no current one.

    Examples:
        >>> current_model(LanguageModel("openai/gpt-4o-mini"))
        LanguageModel(model='openai/gpt-4o-mini')
    """
    return LanguageModel.of_client(dspy.settings.lm if lm is None else lm)


class _Adapter(dspy.ChatAdapter):  # type: ignore[misc]  # DSPy has no types
    """DSPy's own adapter, except that an endless answer is a parse error."""

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        try:
            parsed: dict[str, Any] = super().parse(signature, completion[:LONGEST_ANSWER])
        except (RecursionError, MemoryError, TypeError) as error:
            raise _errors.AdapterParseError(
                adapter_name="ChatAdapter", signature=signature, lm_response=completion, message=repr(error)
            ) from None
        return parsed


def ask(
    program: Any,
    inputs: Mapping[str, Any],
    field: str | tuple[str, ...],
    read: Callable[[object], T | None],
) -> Outcome[T]:
    """Ask a program one question with the model of DSPy's current settings.

    Args:
        program: a DSPy module that asks once.
        inputs: its input fields.
        field: the output field to read; or several, which are read as a mapping of those that could be distinguished.
        read: turns the field's value, or its text where the answer did not parse, into a value; None if it cannot.

    Examples:
        >>> import dspy
        >>> program = dspy.Predict("question -> answer")
        >>> with using(LanguageModel("openai/gpt-4o-mini")):  # doctest: +SKIP
        ...     outcome = ask(program, {"question": "What do whales eat?"}, "answer", str)
    """
    value, outcome = None, Outcome[T](None, "the answer cannot be used")
    with answers_kept_if_good(fingerprint_of_program(program)) as scope:
        try:
            said = program(**inputs)
            one = isinstance(field, str)
            value = read(said.get(field) if one else {name: said.get(name) for name in field})
        except _errors.AdapterParseError as error:
            value = read(_unparsed(str(error.lm_response), field, list(error.signature.output_fields)))
        except NoTextError as error:
            outcome = Outcome(None, f"the answer cannot be used: {error.message}")
        except _errors.LMError as error:
            reason = " ".join(error.message.split("\n\n")[0].split())[:300]
            for_good = isinstance(error, _FOR_GOOD)
            failed = for_good or not isinstance(error, _ABOUT_THIS_QUESTION)
            outcome = Outcome(None, f"the endpoint gave none: {reason}", endpoint_failed=failed, for_good=for_good)
        except ValueError as error:
            if not isinstance(error, UnicodeError) and "not valid Unicode" not in str(error):
                raise
            outcome = Outcome(None, "the question cannot be sent: it is not valid Unicode")
        if value is not None:
            scope.keep()
            return Outcome(value)
    _count_degraded(outcome.reason)
    return outcome


def ask_all(
    lm: LanguageModel | None,
    program: Any,
    questions: Sequence[Mapping[str, Any]],
    field: str | tuple[str, ...],
    read: Callable[[Mapping[str, Any], object], T | None],
    what: str,
    otherwise: str = "are searched as they are",
    line: AskingLine | None = None,
    things: str = "queries",
) -> list[T | None]:
    """Ask many questions, as many at a time as the endpoint allows; each gets a value or None.

    Args:
        lm: the model; None for the one of DSPy's current settings.
        program: a DSPy module that asks once.
        questions: the input fields of each; equal questions are asked once.
        field: the output field to read, or several, as for :func:`ask`.
        read: as for :func:`ask`, with the question as its first argument.
        what: name on the progress bar and in the warning.
        otherwise: treatment of queries without an answer, for the warning.
        line: the batch that these questions belong to; by default a new one.
        things: what is asked about, for the warning.

    Returns:
        One per question. If any is None, one warning gives their number and the reason.

    Raises:
        ConfigurationError: there is no model.

    Examples:
        >>> import dspy
        >>> program = dspy.Predict("question -> answer")
        >>> lm = LanguageModel("openai/gpt-4o-mini")
        >>> asked = [{"question": query.text} for query in queries]
        >>> ask_all(lm, program, asked, "answer", lambda inputs, answer: str(answer), "questions")  # doctest: +SKIP
    """
    keys = [repr(sorted(question.items())) for question in questions]
    distinct = dict(zip(keys, questions, strict=True))
    line, lm = line or AskingLine(), current_model(lm)
    with progress(what, len(distinct)) as advance, using(lm):

        def ask_one(question: Mapping[str, Any], _: Callable[[], bool]) -> Outcome[T]:
            outcome = line.ask(partial(ask, program, question, field, partial(read, question)))
            advance(1)
            return outcome

        by_key = dict(zip(distinct, side_by_side(ask_one, list(distinct.values()), lm.endpoint.calls_at_once), strict=True))
    outcomes = [by_key[key] for key in keys]
    reasons = Counter(outcome.reason for outcome in outcomes if outcome.value is None)
    if reasons:
        commonest = "; ".join(f"{number} times {without_secrets(reason)}" for reason, number in reasons.most_common(3))
        add_note(
            f"{what}: no usable answer from {lm.model} for {reasons.total()} of {len(outcomes)} "
            f"{things}, which {otherwise} ({commonest})"
        )
    return [outcome.value for outcome in outcomes]


class AskingLine:
    """A batch of questions to one endpoint, which is abandoned after ten failures in a row.

    Examples:
        >>> AskingLine().given_up is None
        True
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._in_a_row = 0
        self.given_up: str | None = None
        """The reason why the endpoint is not asked any more; None as long as it is."""

    def ask(self, asking: Callable[[], Outcome[T]]) -> Outcome[T]:
        """Ask, unless the endpoint is abandoned."""
        if self.given_up is not None:
            _count_degraded("")
            return Outcome(None, self.given_up, endpoint_failed=True)
        outcome = asking()
        with self._lock:
            self._in_a_row = self._in_a_row + 1 if outcome.endpoint_failed else 0
            if self.given_up is None and (outcome.for_good or self._in_a_row >= _GIVE_UP_AFTER):
                self.given_up = f"not asked any more after {outcome.reason}"
        return outcome


def _count_degraded(reason: str) -> None:
    count(dspy.settings.lm.engine.counter, CallCounts(degraded=1), str(without_secrets(reason)))


def _unparsed(text: str, field: str | tuple[str, ...], outputs: list[str]) -> object:
    """Return what an answer that does not parse says of a field, or of several, also in JSON or after labels of its own."""
    if isinstance(field, str):
        return _part(text, field, outputs)
    found = read_object(text) or {}
    keys = sorted(found, key=lambda key: key.lower() in field)  # the last match stays: that of the whole name
    parts = {name: found[key] for name in field for key in keys if key.lower().endswith(name)}
    return parts or {name: part for name in field if (part := _part(text, name, outputs)) is not None} or None


def _part(text: str, field: str, outputs: list[str]) -> str | None:
    """The text of a field in an answer that does not parse: after its marker, or all of it if there is only one field."""
    names = "|".join(map(re.escape, outputs))
    marker = re.compile(rf"\[\[ ?## ?(\w+) ?## ?\]\]|^[#*_ ]*(?:final )?({names})[*_ ]*:[*_ ]*", re.IGNORECASE | re.MULTILINE)
    markers = list(marker.finditer(text))
    for one, after in zip_longest(markers, markers[1:]):
        if (one[1] or one[2]).lower() == field:
            return text[one.end() : after.start() if after else len(text)].strip()
    return marker.sub("", text).strip() if len(outputs) == 1 else None
