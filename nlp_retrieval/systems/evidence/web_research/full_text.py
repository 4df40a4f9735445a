"""Reading whole texts with a language model, without an index: extract, match, quote.

A text is data: it is shown on numbered lines that it cannot imitate, and only the parts of an answer about these lines count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from nlp_retrieval import LanguageModel
from nlp_retrieval.core import check_queries
from nlp_retrieval.lm import LONGEST_ANSWER
from nlp_retrieval.systems.evidence.index.passages import by_shared_words, normal_text, passage_spans
from nlp_retrieval.systems.evidence.verifiers.base import Span
from nlp_retrieval.systems.evidence.web_research.searching import merged_by_rank
from nlp_retrieval.text import fenced, located, sentences_around

Stance = Literal["supports", "contradicts"]

_MOST_EXTRACTED = 5
_CHARACTERS, _MOST_PARTS = 20_000, 8
"""The most characters of a text that are shown at once, and the most such parts of it, those that share most words."""
_MARKS = " \n\t`\"'\u201c\u201d\u2018\u2019\u00ab\u00bb"
_NO_QUOTE = frozenset(("", "none", "n/a", "null", "nothing"))


@dataclass(frozen=True)
class TextPassage:
    """A passage of a text: its span in the text's stored form, in characters, and its exact content."""

    start: int
    end: int
    content: str


@dataclass(frozen=True)
class MatchedPassage:
    """A passage, and its stance on a claim, by the model."""

    passage: TextPassage
    stance: Stance


@dataclass(frozen=True)
class Quotation:
    """Words of a text, and the span of the whole sentences around them, which may reverse the meaning."""

    start: int
    end: int
    content: str
    sentences: Span


class _NumberedText:
    """A text in its stored form, and its passages by their numbers from 1: those of the index."""

    def __init__(self, text: str) -> None:
        self.text = normal_text(text)
        self.spans = passage_spans(self.text)

    def passage(self, number: int) -> TextPassage:
        start, end = self.spans[number - 1]
        return TextPassage(start, end, self.text[start:end])

    def shown(self, part: range) -> str:
        """Return passages as lines that begin with their numbers."""
        return "\n".join(f"[{number}] {fenced(self.passage(number).content)}" for number in part)

    def parts(self, query: str) -> list[range]:
        """Return the numbers of passages to be shown together, in order; of a longer text, the parts nearest to a query."""
        begins = [1]
        for number, (_, end) in enumerate(self.spans, start=1):
            if end - self.spans[begins[-1] - 1][0] > _CHARACTERS:
                begins.append(number)
        parts = [range(begin, end) for begin, end in zip(begins, [*begins[1:], len(self.spans) + 1], strict=True)]
        texts = [self.text[self.spans[part[0] - 1][0] : self.spans[part[-1] - 1][1]] for part in parts]
        return [parts[number] for number in sorted(by_shared_words(query, texts)[:_MOST_PARTS])]


class _TextReading:
    """A question about a text, asked a part at a time."""

    def __init__(self, lm: LanguageModel) -> None:
        self.lm = LanguageModel.of_client(lm)

    def _asked(
        self, query: str, text: str, prompt: str, fields: tuple[str, str], read: Callable[[object, _NumberedText, range], Any]
    ) -> tuple[_NumberedText, list[Any]]:
        """Ask about the parts of a text; return it, and the usable answers."""
        from nlp_retrieval.lm import ask_all, dspy
        from nlp_retrieval.systems.evidence import prompts

        query_field, answer_field = fields
        (checked,) = check_queries([query], query_field, f"{query_field}s")
        numbered = _NumberedText(text)
        parts = {numbered.shown(part): part for part in numbered.parts(checked)}

        def read_one(question: Mapping[str, Any], answer: object) -> Any:
            return read(answer, numbered, parts[question["passages"]])

        predict, what = dspy.Predict(getattr(prompts, prompt)), type(self).__name__.lower()
        asked = [{query_field: fenced(checked), "passages": shown} for shown in parts]
        return numbered, [one for one in ask_all(self.lm, predict, asked, answer_field, read_one, what, "give nothing") if one]


class Extract(_TextReading):
    """Chooses the passages of a text that help most to answer a question, without an index.

    The model names passages by their numbers, so that results are always in the text.

    Args:
        lm: the language model.

    Examples:
        >>> extract = Extract(LanguageModel("openai/gpt-4o-mini"))
        >>> extract.extract("How much does a blue whale eat?", Path("report.md").read_text())  # doctest: +SKIP
    """

    def extract(self, question: str, text: str) -> list[TextPassage]:
        """Return at most five passages of a text, most helpful first."""
        numbered, answers = self._asked(question, text, "SelectPassages", ("question", "numbers"), _numbers)
        return [numbered.passage(number) for number in merged_by_rank(answers, lambda number: number)[:_MOST_EXTRACTED]]


def _numbers(answer: object, _: _NumberedText, part: range) -> list[int] | None:
    numbers = _typed(answer, list[int])
    shown = list(dict.fromkeys(number for number in numbers or () if number in part))
    return shown if shown or numbers == [] else None


class Match(_TextReading):
    """Finds the passages of a text that support a claim, and those that contradict it, without an index.

    The model names passages by their numbers, so that results are always in the text; the stance is its opinion.

    Examples:
        >>> match = Match(LanguageModel("openai/gpt-4o-mini"))
        >>> match.match("Blue whales eat fish.", Path("report.md").read_text())  # doctest: +SKIP
    """

    def match(self, claim: str, text: str) -> list[MatchedPassage]:
        """Return the passages of a text with a stance on a claim, the clearest of each part first."""
        numbered, answers = self._asked(claim, text, "JudgePassages", ("claim", "findings"), _stances)
        return [MatchedPassage(numbered.passage(number), stance) for stances in answers for number, stance in stances.items()]


def _stances(answer: object, _: _NumberedText, part: range) -> dict[int, Stance] | None:
    """Return the stances by number, without a passage that has both."""
    from nlp_retrieval.systems.evidence.prompts import PassageStance

    findings = _typed(answer, list[PassageStance])
    by_number: dict[int, set[Stance]] = {}
    for finding in findings or ():
        if finding.number in part:
            by_number.setdefault(finding.number, set()).add(finding.stance)
    stances = {number: stance for number, opinions in by_number.items() if len(opinions) == 1 for stance in opinions}
    return stances if stances or findings == [] else None


class Quote(_TextReading):
    """Quotes the words of a text that support a claim.

    The model's answer is returned only if it is in the text word for word; that it supports the claim is the model's opinion.

    Examples:
        >>> quote = Quote(LanguageModel("openai/gpt-4o-mini"))
        >>> quote.quote("Blue whales eat tons of krill.", Path("report.md").read_text()).content  # doctest: +SKIP
        'Blue whales eat four tons of krill a day'
    """

    def quote(self, claim: str, text: str) -> Quotation | None:
        """Return the words of a text that support a claim; None if the model gives none that are there."""
        numbered, answers = self._asked(claim, text, "QuotePassages", ("claim", "quote"), _quoted)
        span = next((span for (span,) in answers), None)
        return span and Quotation(span[0], span[1], numbered.text[slice(*span)], sentences_around(span, numbered.text))


def _quoted(answer: object, text: _NumberedText, part: range) -> list[Span] | None:
    """Return the span of the quotation in an answer, none if it says that there is none; None for one not in the text."""
    if not isinstance(answer, str):
        return None
    bare = answer[:LONGEST_ANSWER].strip(_MARKS)
    if bare.strip(".").lower() in _NO_QUOTE:
        return []
    span = located(bare, text.text, text.spans[part[0] - 1][0], text.spans[part[-1] - 1][1])
    return None if span is None else [span]


def _typed(answer: object, kind: Any) -> Any:
    """Return an answer of a type; None for another."""
    try:
        return TypeAdapter(kind).validate_python(answer)
    except ValidationError:
        return None
