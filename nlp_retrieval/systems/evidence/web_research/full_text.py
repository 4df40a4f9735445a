"""Reading whole texts with a language model, without an index: extract, match, quote.

A text is data: it is shown on numbered lines that it cannot imitate, and only the parts of an answer about these lines count.
A part of a text without a usable answer gives nothing, and one warning per batch says how many there were, and why.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from nlp_retrieval import LanguageModel
from nlp_retrieval.core import check_k, check_queries
from nlp_retrieval.errors import QueryError
from nlp_retrieval.lm import LONGEST_ANSWER, unwrapped
from nlp_retrieval.systems.evidence.index.passages import normal_text, passage_spans
from nlp_retrieval.systems.evidence.verifiers.base import Span
from nlp_retrieval.systems.evidence.web_research.searching import merged_by_rank
from nlp_retrieval.text import fenced, located, sentences_around, words_of

AnswerT = TypeVar("AnswerT")
Stance = Literal["supports", "contradicts"]

_CHARACTERS, _MOST_PARTS = 20_000, 8
"""The most characters of a text that are shown at once, and the most such parts of it, those that share most words."""
_MARKS = " \n\t`\"'\u201c\u201d\u2018\u2019\u00ab\u00bb"
_NO_QUOTE = frozenset(("none", "n/a", "null", "nothing"))


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
    """Words of a text: their span in its stored form, in characters, and their exact content.

    ``sentences`` is the span of the whole sentences around them, which may contain words that reverse the meaning.
    """

    start: int
    end: int
    content: str
    sentences: Span


class _NumberedText:
    """A text and its passages, by their numbers from 1; they are those of the index."""

    def __init__(self, text: str) -> None:
        self.text = normal_text(text)
        self.spans = passage_spans(self.text)

    def passage(self, number: int) -> TextPassage:
        start, end = self.spans[number - 1]
        return TextPassage(start, end, self.text[start:end])

    def parts(self, query: str) -> list[list[int]]:
        """Return the numbers of the passages to be shown together, in order; of a longer text, the parts nearest to a query."""
        groups: list[list[int]] = []
        size = 0
        for number, (start, end) in enumerate(self.spans, start=1):
            size += end - start
            if not groups or size > _CHARACTERS:
                groups.append([])
                size = end - start
            groups[-1].append(number)
        wanted = set(words_of(query))

        def shared(group: list[int]) -> int:
            return len(wanted & set(words_of(self.text[self.spans[group[0] - 1][0] : self.spans[group[-1] - 1][1]])))

        return groups if len(groups) <= _MOST_PARTS else sorted(sorted(groups, key=shared, reverse=True)[:_MOST_PARTS])


class FullTextModule(ABC, Generic[AnswerT]):
    """A step of DSPy for questions about texts, a part at a time."""

    signature: ClassVar[str]
    """Name of the prompt, of :mod:`nlp_retrieval.systems.evidence.prompts`."""

    fields: ClassVar[tuple[str, str]]
    """Its fields for the query and the answer."""

    def __init__(self, lm: LanguageModel) -> None:
        self.lm = LanguageModel.of_client(lm)

    @abstractmethod
    def read(self, answer: object, text: _NumberedText, part: list[int]) -> AnswerT | None:
        """Return the usable content of an answer about a part of a text; None if there is none."""

    def _answers(
        self, queries: Sequence[str], texts: Sequence[str], plural: str
    ) -> list[tuple[_NumberedText, list[AnswerT | None]]]:
        """Ask about texts, all in one batch; return each, and an answer for each part of it, None for an unusable one."""
        checked = check_queries(queries, plural[:-1], plural)
        if isinstance(texts, str) or len(texts) != len(checked):
            raise QueryError(f"give one text for each of the {len(checked)} {plural}, in a list")
        numbered = [_NumberedText(text) for text in texts]
        parts = [text.parts(query) for query, text in zip(checked, numbered, strict=True)]
        query_field, answer_field = self.fields
        asked, about = list[dict[str, Any]](), dict[str, tuple[_NumberedText, list[int]]]()
        for query, text, some in zip(checked, numbered, parts, strict=True):
            for part in some:
                shown = "\n".join(f"[{number}] {fenced(text.passage(number).content)}" for number in part)
                asked.append({query_field: fenced(query), "passages": shown})
                about[shown] = text, part
        if not asked:
            return []
        from nlp_retrieval.lm import ask_all, dspy
        from nlp_retrieval.systems.evidence import prompts

        def read(question: Mapping[str, Any], answer: object) -> AnswerT | None:
            return self.read(answer, *about[question["passages"]])

        predict = dspy.Predict(getattr(prompts, self.signature))
        what = type(self).__name__.lower()
        answers = iter(ask_all(self.lm, predict, asked, answer_field, read, what, "give nothing"))
        return [(text, [next(answers) for _ in some]) for text, some in zip(numbered, parts, strict=True)]


def _typed(answer: object, kind: TypeAdapter[AnswerT]) -> AnswerT | None:
    """Return an answer of a type; None for another."""
    try:
        return kind.validate_python(answer)
    except ValidationError:
        return None


class Extract(FullTextModule[list[int]]):
    """Chooses the passages of a text that help most to answer a question, without an index.

    The model names passages by their numbers, so that results are always in the text.

    Args:
        lm: the language model.
        most: the most passages of a text.

    Examples:
        >>> extract = Extract(LanguageModel("openai/gpt-4o-mini"), most=3)
        >>> extract.extract("How much does a blue whale eat?", Path("report.md").read_text())  # doctest: +SKIP
    """

    signature, fields = "SelectPassages", ("question", "numbers")

    def __init__(self, lm: LanguageModel, most: int = 5) -> None:
        super().__init__(lm)
        self.most = check_k(most, "most")

    def extract(self, question: str, text: str) -> list[TextPassage]:
        """Return passages of a text, most helpful first."""
        return self.extract_all([question], [text])[0]

    def extract_all(self, questions: Sequence[str], texts: Sequence[str]) -> list[list[TextPassage]]:
        """Return passages of each text for its question; all are asked in one batch."""
        return [
            [
                text.passage(number)
                for number in merged_by_rank([numbers for numbers in answers if numbers], lambda number: number)[: self.most]
            ]
            for text, answers in self._answers(questions, texts, "questions")
        ]

    def read(self, answer: object, text: _NumberedText, part: list[int]) -> list[int] | None:
        del text
        numbers = _typed(answer, TypeAdapter(list[int]))
        shown = list(dict.fromkeys(number for number in numbers or () if number in part))
        return shown if shown or numbers == [] else None


class Match(FullTextModule[dict[int, Stance]]):
    """Finds the passages of a text that support a claim, and those that contradict it, without an index.

    The model names passages by their numbers, so that results are always in the text. The stance is the model's opinion,
    without a probability; a verifier (:mod:`nlp_retrieval.systems.evidence.verifiers`) gives one.

    Examples:
        >>> match = Match(LanguageModel("openai/gpt-4o-mini"))
        >>> match.match("Blue whales eat fish.", Path("report.md").read_text())  # doctest: +SKIP
    """

    signature, fields = "JudgePassages", ("claim", "findings")

    def match(self, claim: str, text: str) -> list[MatchedPassage]:
        """Return the passages of a text with a stance on a claim, the clearest of each part first."""
        return self.match_all([claim], [text])[0]

    def match_all(self, claims: Sequence[str], texts: Sequence[str]) -> list[list[MatchedPassage]]:
        """Return the passages of each text with a stance on its claim; all are asked in one batch."""
        return [
            [MatchedPassage(text.passage(number), stance) for stances in answers for number, stance in (stances or {}).items()]
            for text, answers in self._answers(claims, texts, "claims")
        ]

    def read(self, answer: object, text: _NumberedText, part: list[int]) -> dict[int, Stance] | None:
        """Return the stances by number, without a passage that has both."""
        del text
        from nlp_retrieval.systems.evidence.prompts import PassageStance

        findings = _typed(answer, TypeAdapter(list[PassageStance]))
        if findings is None:
            return None
        by_number: dict[int, set[Stance]] = {}
        for finding in findings:
            if finding.number in part:
                by_number.setdefault(finding.number, set()).add(finding.stance)
        stances = {number: stance for number, opinions in by_number.items() if len(opinions) == 1 for stance in opinions}
        return stances if stances or not findings else None


class Quote(FullTextModule[str]):
    """Quotes the words of a text that support a claim.

    The model's answer is looked up in the text, and returned only if it is there word for word; only white space may differ,
    and the text's own words are returned. That they support the claim is the model's opinion.

    Examples:
        >>> quote = Quote(LanguageModel("openai/gpt-4o-mini"))
        >>> quote.quote("Blue whales eat tons of krill.", Path("report.md").read_text()).content  # doctest: +SKIP
        'Blue whales eat four tons of krill a day'
    """

    signature, fields = "QuotePassages", ("claim", "quote")

    def quote(self, claim: str, text: str) -> Quotation | None:
        """Return the words of a text that support a claim; None if the model gives none that are there."""
        return self.quote_all([claim], [text])[0]

    def quote_all(self, claims: Sequence[str], texts: Sequence[str]) -> list[Quotation | None]:
        """Return a quotation of each text for its claim; all are asked in one batch."""
        return [
            _quotation(next(filter(None, answers), ""), text.text) for text, answers in self._answers(claims, texts, "claims")
        ]

    def read(self, answer: object, text: _NumberedText, part: list[int]) -> str | None:
        """Return the quotation in an answer, empty if it says that there is none; None for one that is not in the text."""
        words = unwrapped(answer)
        if not isinstance(words, str):
            return None
        words = words[:LONGEST_ANSWER].strip()
        bare = words.strip(_MARKS)
        if bare.strip(".").lower() in _NO_QUOTE:
            return ""
        begin, end = text.spans[part[0] - 1][0], text.spans[part[-1] - 1][1]
        forms = (words, bare.partition("] ")[2] if bare.startswith("[") else "")
        return next((form for form in forms if located(form, text.text, begin, end) is not None), None)


def _quotation(words: str, text: str) -> Quotation | None:
    span = located(words, text) if words else None
    return None if span is None else Quotation(*span, text[slice(*span)], sentences_around(span, text))
