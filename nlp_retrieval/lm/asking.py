"""Asking a DSPy program; a question without a usable answer is counted and never raises an error."""

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
from nlp_retrieval.lm.engine import answers_kept_if_good, dspy
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.programs import fingerprint_of_program
from nlp_retrieval.lm.reading import read_object

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Field = str | tuple[str, ...]

_errors = dspy.utils.exceptions
_ABOUT_THIS_QUESTION = (_errors.LMInvalidRequestError, _errors.LMCollectionLimitError, _errors.LMStreamAssemblyError)
_FOR_GOOD = (
    _errors.LMAuthError,
    _errors.LMBillingError,
    _errors.LMConfigurationError,
    _errors.LMUnsupportedModelError,
    _errors.LMUnsupportedFeatureError,
)
_GIVE_UP_AFTER = 10


@dataclass(frozen=True)
class Outcome(Generic[T_co]):
    """What was read from an answer, or why there is nothing, and whether the endpoint is to blame, perhaps for good."""

    value: T_co | None
    reason: str = ""
    endpoint_failed: bool = False
    for_good: bool = False


@contextmanager
def using(lm: LanguageModel) -> Iterator[None]:
    """Make DSPy programs inside the block ask this model, or its copy by which an optimiser draws samples; once a question."""
    current = dspy.settings.lm
    asked = current if getattr(current, "language_model", None) is lm else lm.dspy_lm()
    # no second call in JSON by the adapter: an answer that does not parse is repaired here or discarded
    with dspy.context(adapter=dspy.ChatAdapter(use_json_adapter_fallback=False), disable_history=True, lm=asked):
        yield


class AskingLine:
    """A batch of questions to one model, which is abandoned after ten failures in a row.

    Examples:
        >>> AskingLine().given_up is None
        True
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._in_a_row = 0
        self.given_up: str | None = None  # why the model is not asked any more

    def ask(
        self, lm: LanguageModel, program: Any, inputs: Mapping[str, Any], field: Field, read: Callable[[object], T | None]
    ) -> Outcome[T]:
        """Ask a program one question, unless the model is abandoned; the arguments are those of :func:`ask_all`."""
        counter = lm.dspy_lm().engine.counter
        if self.given_up is not None:
            count(counter, CallCounts(degraded=1))
            return Outcome(None, self.given_up, endpoint_failed=True)
        with using(lm):
            outcome = _asked(program, inputs, field, read)
        if outcome.value is None:
            count(counter, CallCounts(degraded=1), str(without_secrets(outcome.reason)))
        with self._lock:
            self._in_a_row = self._in_a_row + 1 if outcome.endpoint_failed else 0
            if self.given_up is None and (outcome.for_good or self._in_a_row >= _GIVE_UP_AFTER):
                self.given_up = f"not asked any more after {outcome.reason}"
        return outcome


def _asked(program: Any, inputs: Mapping[str, Any], field: Field, read: Callable[[object], T | None]) -> Outcome[T]:
    with answers_kept_if_good(fingerprint_of_program(program)) as keep:
        try:
            said = program(**inputs)
            value = read(said.get(field) if isinstance(field, str) else {name: said.get(name) for name in field})
        except _errors.AdapterParseError as error:
            value = read(_unparsed(str(error.lm_response), field, list(error.signature.output_fields)))
        except _errors.LMError as error:
            status = f"HTTP {error.status}" if (error.status or 0) >= 400 else ""  # a server may say nothing else
            reason = " ".join(f"{status} {error.message}".split("\n\n")[0].split())[:300]
            reason = reason if reason.startswith("the answer") else f"the endpoint gave none: {reason}"
            failed, for_good = not isinstance(error, _ABOUT_THIS_QUESTION), isinstance(error, _FOR_GOOD)
            return Outcome(None, reason, endpoint_failed=failed or for_good, for_good=for_good)
        except ValueError as error:
            if not isinstance(error, UnicodeError) and "not valid Unicode" not in str(error):
                raise
            return Outcome(None, "the question cannot be sent: it is not valid Unicode")
        except (RecursionError, MemoryError):  # DSPy reads what is nested deeply
            value = None
        if value is None:
            return Outcome(None, "the answer cannot be used")
        keep()
        return Outcome(value)


def ask_all(
    lm: LanguageModel | None,
    program: Any,
    questions: Sequence[Mapping[str, Any]],
    field: Field,
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
        field: the output field to read; or several, which are read as a mapping of those that could be distinguished.
        read: turns a question and the field's value, or its text where the answer did not parse, into a value; None if it
            cannot.
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
    one_line, model = line or AskingLine(), LanguageModel.of_client(lm)
    with progress(what, len(distinct)) as advance:

        def ask_one(question: Mapping[str, Any], _: Callable[[], bool]) -> Outcome[T]:
            outcome = one_line.ask(model, program, question, field, partial(read, question))
            advance(1)
            return outcome

        answers = side_by_side(ask_one, list(distinct.values()), model.endpoint.calls_at_once)
    by_key = dict(zip(distinct, answers, strict=True))
    outcomes = [by_key[key] for key in keys]
    reasons = Counter(outcome.reason for outcome in outcomes if outcome.value is None)
    if reasons:
        commonest = "; ".join(f"{number} times {without_secrets(reason)}" for reason, number in reasons.most_common(3))
        add_note(
            f"{what}: no usable answer from {model.model} for {reasons.total()} of {len(outcomes)} "
            f"{things}, which {otherwise} ({commonest})"
        )
    return [outcome.value for outcome in outcomes]


def _unparsed(text: str, field: Field, outputs: list[str]) -> object:
    """Return what an answer that does not parse says of a field, or of several, also in JSON or after labels of its own."""
    names = (field,) if isinstance(field, str) else field
    said = read_object(text) or {}
    keys = sorted(said, key=lambda key: key.lower() in names)  # the last match stays: that of the whole name
    given = {name: said[key] for name in names for key in keys if key.lower().endswith(name)}
    parts = {name: given[name] if name in given else _part(text, name, outputs) for name in names}
    return parts[field] if isinstance(field, str) else parts


def _part(text: str, field: str, outputs: list[str]) -> str | None:
    """The text of a field in an answer that does not parse: after its marker, or all of it if there is only one field."""
    names = "|".join(map(re.escape, outputs))
    marker = re.compile(rf"\[\[ ?## ?(\w+) ?## ?\]\]|^[#*_ ]*(?:final )?({names})[*_ ]*:[*_ ]*", re.IGNORECASE | re.MULTILINE)
    markers = list(marker.finditer(text))
    for one, after in zip_longest(markers, markers[1:]):
        if (one[1] or one[2]).lower() == field:
            return text[one.end() : after.start() if after else len(text)].strip()
    return marker.sub("", text).strip() if len(outputs) == 1 else None
