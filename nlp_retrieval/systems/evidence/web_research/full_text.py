"""Reading whole texts with a language model, without an index: extract, match, quote."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from nlp_retrieval import LanguageModel
from nlp_retrieval.core import check_k, check_queries, parse_json
from nlp_retrieval.errors import ConfigurationError, QueryError
from nlp_retrieval.lm import LONGEST_ANSWER, CompiledProgram, load_program, read_program, unwrapped
from nlp_retrieval.systems.evidence.index.passages import normal_text, passage_spans
from nlp_retrieval.systems.evidence.verifiers.base import Span
from nlp_retrieval.systems.evidence.web_research.searching import merged_by_rank
from nlp_retrieval.text import fenced, located, sentences_around, words_of


@dataclass(frozen=True)
class TextPassage:
    """A passage of a text.

    Args:
        start: of the passage in the text's stored form
            (:func:`~nlp_retrieval.systems.evidence.index.passages.normal_text`), in characters.
        end: of the passage.
        content: the exact text of the span.
    """

    start: int
    end: int
    content: str


@dataclass(frozen=True)
class TextPart:
    """Passages that are shown together."""

    shown: str
    numbers: tuple[int, ...]


class NumberedText:
    """A text and its passages, those of the index (:mod:`nlp_retrieval.systems.evidence.index.passages`).

    Raises:
        ItemError: it is not a string, or empty.
    """

    def __init__(self, text: str) -> None:
        self.text = normal_text(text)
        self.spans = passage_spans(self.text)

    def passage(self, number: int) -> TextPassage:
        """Return a passage."""
        start, end = self.spans[number - 1]
        return TextPassage(start, end, self.text[start:end])

    def part(self, numbers: Sequence[int]) -> TextPart:
        """Return passages as a part to show."""
        lines = [f"[{number}] {fenced(self.passage(number).content)}" for number in numbers]
        return TextPart("\n".join(lines), tuple(numbers))

    def parts(self, query: str, characters: int, most: int) -> list[TextPart]:
        """Return the parts of the text, in order; of a longer text those that share most words with a query.

        Args:
            query: a question, or a claim.
            characters: the most characters of a part; a passage is never divided.
            most: the most parts.
        """
        groups: list[list[int]] = []
        size = 0
        for number, (start, end) in enumerate(self.spans, start=1):
            size += end - start
            if not groups or size > characters:
                groups.append([])
                size = end - start
            groups[-1].append(number)
        if len(groups) > most:
            wanted = set(words_of(query))
            shared = [len(wanted & set(words_of(self._content(group)))) for group in groups]
            best = sorted(range(len(groups)), key=lambda number_of_group: (-shared[number_of_group], number_of_group))[:most]
            groups = [groups[number_of_group] for number_of_group in sorted(best)]
        return [self.part(group) for group in groups]

    def _content(self, numbers: Sequence[int]) -> str:
        return self.text[self.spans[numbers[0] - 1][0] : self.spans[numbers[-1] - 1][1]]


# Asking a language model about whole texts: in parts, in batches, with cached answers; one failure does not stop others.

AnswerT = TypeVar("AnswerT")
_LEAST = 1_000


class FullTextModule(ABC, Generic[AnswerT]):
    """A DSPy program of one step for questions about texts, a part at a time.

    A text is data: it is shown on numbered lines that it cannot imitate, and only the parts of an answer about these lines
    count. A part without a usable answer has no result, and one warning per batch says how many there were, and why.

    Args:
        lm: the language model.
        characters: the most characters of a text that are shown at once, 1,000 or more.
        most_parts: the most such parts of a longer text that are read: those that share most words with the query.
        program: the JSON file of a compiled program; by default the plain signature.

    Raises:
        SourceError: there is no such file, or it is not JSON.
        ConfigurationError: it is not the state of such a program, or a number is out of range.
    """

    what: ClassVar[str]
    """Name in warnings and the progress bar."""

    fields: ClassVar[Mapping[str, tuple[str, str, str]]]
    """The predictor's name, and its fields: the query, the passages, the answer."""

    def __init__(
        self,
        lm: LanguageModel,
        characters: int = 20_000,
        most_parts: int = 8,
        program: str | Path | None = None,
    ) -> None:
        if characters < _LEAST or most_parts < 1:
            raise ConfigurationError(
                f"{type(self).__name__}: characters={characters}, most_parts={most_parts}; write at least {_LEAST:,} and 1"
            )
        self.lm, self.characters, self.most_parts = LanguageModel.of_client(lm), characters, most_parts
        self.compiled: CompiledProgram | None = read_program(program, self.fields) if program is not None else None
        self._program: Any = None

    @abstractmethod
    def read(self, answer: object, text: NumberedText, part: TextPart) -> AnswerT | None:
        """Return the usable content of an answer about a part of a text; None if there is none."""

    def parts(self, query: str, text: NumberedText) -> list[TextPart]:
        """Return the parts of a text to ask about."""
        return text.parts(query, self.characters, self.most_parts)

    def ask(
        self, queries: Sequence[str], texts: Sequence[NumberedText], parts: Sequence[Sequence[TextPart]]
    ) -> list[list[AnswerT | None]]:
        """Ask about parts of texts, all in one batch.

        Args:
            queries: one per text.
            texts: to ask about.
            parts: of each text.

        Returns:
            For each text an answer per part; None for an unusable one.
        """
        from nlp_retrieval.lm import ask_all
        from nlp_retrieval.systems.evidence.prompts import PROGRAMS

        ((predictor, (query_field, passages_field, answer_field)),) = self.fields.items()
        asked = [
            ({query_field: fenced(query), passages_field: part.shown}, text, part)
            for query, text, some in zip(queries, texts, parts, strict=True)
            for part in some
        ]
        if not asked:
            return [[] for _ in queries]
        if self._program is None:
            program = PROGRAMS[self.what]()
            if self.compiled is not None:
                load_program(program, self.compiled)
            self._program = program
        about = {question[passages_field]: (text, part) for question, text, part in asked}

        def read(question: Mapping[str, Any], answer: object) -> AnswerT | None:
            return self.read(answer, *about[question[passages_field]])

        answers = iter(
            ask_all(
                self.lm,
                getattr(self._program, predictor),
                [question for question, _, _ in asked],
                answer_field,
                read,
                self.what,
                "give nothing",
            )
        )
        return [[next(answers) for _ in some] for some in parts]


def checked_pairs(queries: Sequence[str], texts: Sequence[str], what: str, plural: str) -> tuple[list[str], list[NumberedText]]:
    """Return queries, and their texts with numbered passages.

    Raises:
        QueryError: a query is not a string, or the numbers of queries and texts differ.
        ItemError: a text is empty.
    """
    asked = check_queries(queries, what, plural)
    if isinstance(texts, str) or len(texts) != len(asked):
        raise QueryError(f"give one text for each of the {len(asked)} {plural}, in a list")
    return asked, [NumberedText(text) for text in texts]


# Reading numbers of passages, and their stances on a claim, from a model's answer; None if it is unusable.

Stance = Literal["supports", "contradicts"]

_NUMBER = re.compile(r"(?<!\d)\d{1,7}(?!\d)")
_BETWEEN = re.compile(r"[\n,;]")
_NOTHING = frozenset(("[]", "{}", "none", "nothing", "n/a", "null"))
_DEEPEST = 4


def read_numbers(answer: object, valid: Collection[int]) -> list[int] | None:
    """Return the numbers in an answer, each once, in its order.

    Args:
        answer: a list, or text.
        valid: the shown numbers; others are dropped.

    Returns:
        Numbers; empty if the answer says that there are none; None if it is unusable.
    """
    pieces = list(_pieces(answer))
    numbers = [int(number) for piece in pieces for number in _NUMBER.findall(piece)]
    kept = list(dict.fromkeys(number for number in numbers if number in valid))
    if kept or (not numbers and _says_none(answer, pieces)):
        return kept
    return None


def read_stances(answer: object, valid: Collection[int]) -> dict[int, Stance] | None:
    """Return the stances of passages on a claim in an answer.

    A passage with both stances, or neither, is dropped.

    Args:
        answer: a list, or text, such as "3 supports, 5 contradicts".
        valid: the shown numbers; others are dropped.

    Returns:
        Stances by number, in its order; empty if the answer says that there are none; None if it is unusable.
    """
    pieces = list(_pieces(answer))
    by_number: dict[int, set[Stance]] = {}
    for piece in pieces:
        stance = _stance(piece)
        for number in _NUMBER.findall(piece)[:1]:
            if stance is not None and int(number) in valid:
                by_number.setdefault(int(number), set()).add(stance)
    stances = {number: next(iter(opinions)) for number, opinions in by_number.items() if len(opinions) == 1}
    if stances or (not by_number and _says_none(answer, pieces)):
        return stances
    return None


def _stance(piece: str) -> Stance | None:
    lower = piece.lower()
    supports, contradicts = "support" in lower, "contradict" in lower or "refute" in lower
    if supports == contradicts or "not " in lower or "neither" in lower:
        return None
    return "supports" if supports else "contradicts"


def _says_none(answer: object, pieces: Sequence[str]) -> bool:
    if isinstance(answer, str):
        return answer.strip(" \n`.\"'").lower() in _NOTHING
    return isinstance(answer, list) and all(piece.strip().lower() in _NOTHING for piece in pieces)


def _pieces(answer: object, depth: int = 0) -> Iterator[str]:
    """Yield the parts of an answer, each about one passage."""
    if isinstance(answer, str):
        text = answer[:LONGEST_ANSWER].strip()
        if depth < _DEEPEST and text[:1] in ("[", "{"):
            try:
                yield from _pieces(parse_json(text), depth + 1)
            except ValueError:
                pass
            else:
                return
        yield from _BETWEEN.split(text)
    elif isinstance(answer, Mapping) and depth < _DEEPEST:
        if all(not isinstance(value, list | dict) for value in answer.values()):
            yield " ".join(str(value) for value in answer.values())[:LONGEST_ANSWER]
        else:
            for value in answer.values():
                yield from _pieces(value, depth + 1)
    elif isinstance(answer, list | tuple) and depth < _DEEPEST:
        for part in answer[:1000]:
            yield from _pieces(part, depth + 1)
    elif isinstance(answer, int) and not isinstance(answer, bool):
        yield str(answer)[:20]


class Extract(FullTextModule[list[int]]):
    """Chooses the passages of a text that help most to answer a question, without an index.

    The model names passages by their numbers, so that results are always in the text. For a text in several parts, it chooses
    once more among the passages chosen from each.

    Args:
        lm: the language model.
        most: the most passages of a text.
        characters: the most characters of a text that are shown at once, 1,000 or more.
        most_parts: the most such parts of a longer text that are read: those that share most words with the question.
        program: the JSON file of a compiled program; by default the plain signature.

    Raises:
        SourceError: there is no such file, or it is not JSON.
        ConfigurationError: it is not the state of such a program, or a number is out of range.

    Examples:
        >>> extract = Extract(LanguageModel("openai/gpt-4o-mini"), most=3)
        >>> extract.extract("How much does a blue whale eat?", Path("report.md").read_text())  # doctest: +SKIP
    """

    what = "extract"
    fields: ClassVar = {"select": ("question", "passages", "numbers")}

    def __init__(
        self,
        lm: LanguageModel,
        most: int = 5,
        characters: int = 20_000,
        most_parts: int = 8,
        program: str | Path | None = None,
    ) -> None:
        super().__init__(lm, characters, most_parts, program)
        self.most = check_k(most, "most")

    def extract(self, question: str, text: str) -> list[TextPassage]:
        """Return passages of a text, most helpful first.

        Args:
            question: to answer.
            text: the whole text.

        Raises:
            QueryError: the question is not a string.
            ItemError: the text is empty.
            DependencyError: DSPy is not installed.
        """
        return self.extract_all([question], [text])[0]

    def extract_all(self, questions: Sequence[str], texts: Sequence[str]) -> list[list[TextPassage]]:
        """Return passages of each text for its question; all are asked in one batch.

        Args:
            questions: one per text.
            texts: as many.
        """
        asked, numbered = checked_pairs(questions, texts, "question", "questions")
        parts = [self.parts(question, text) for question, text in zip(asked, numbered, strict=True)]
        chosen = [
            merged_by_rank([numbers for numbers in answers if numbers], lambda passage: passage)
            for answers in self.ask(asked, numbered, parts)
        ]
        repeated = [number for number, numbers in enumerate(chosen) if len(parts[number]) > 1 and len(numbers) > self.most]
        finals = self.ask(
            [asked[number] for number in repeated],
            [numbered[number] for number in repeated],
            [[numbered[number].part(sorted(chosen[number]))] for number in repeated],
        )
        for number, (numbers,) in zip(repeated, finals, strict=True):
            chosen[number] = numbers or chosen[number]
        return [
            [text.passage(number) for number in numbers[: self.most]] for text, numbers in zip(numbered, chosen, strict=True)
        ]

    def read(self, answer: object, text: NumberedText, part: TextPart) -> list[int] | None:
        del text
        return read_numbers(answer, part.numbers)


@dataclass(frozen=True)
class MatchedPassage:
    """A passage, and its stance on a claim.

    Args:
        passage: of the text.
        stance: "supports" or "contradicts", by the model.
    """

    passage: TextPassage
    stance: Stance


class Match(FullTextModule[dict[int, Stance]]):
    """Finds the passages of a text that support a claim, and those that contradict it, without an index.

    The model names passages by their numbers, so that results are always in the text. The stance is the model's opinion,
    without a probability; a verifier (:mod:`nlp_retrieval.systems.evidence.verifiers`) gives one.

    Examples:
        >>> match = Match(LanguageModel("openai/gpt-4o-mini"))
        >>> match.match("Blue whales eat fish.", Path("report.md").read_text())  # doctest: +SKIP
    """

    what = "match"
    fields: ClassVar = {"judge": ("claim", "passages", "findings")}

    def match(self, claim: str, text: str) -> list[MatchedPassage]:
        """Return the passages of a text with a stance on a claim, the clearest of each part first.

        Args:
            claim: one statement.
            text: the whole text.

        Raises:
            QueryError: the claim is not a string.
            ItemError: the text is empty.
            DependencyError: DSPy is not installed.
        """
        return self.match_all([claim], [text])[0]

    def match_all(self, claims: Sequence[str], texts: Sequence[str]) -> list[list[MatchedPassage]]:
        """Return the passages of each text with a stance on its claim; all are asked in one batch.

        Args:
            claims: one per text.
            texts: as many.
        """
        asked, numbered = checked_pairs(claims, texts, "claim", "claims")
        parts = [self.parts(claim, text) for claim, text in zip(asked, numbered, strict=True)]
        return [
            [MatchedPassage(text.passage(number), stance) for stances in answers for number, stance in (stances or {}).items()]
            for text, answers in zip(numbered, self.ask(asked, numbered, parts), strict=True)
        ]

    def read(self, answer: object, text: NumberedText, part: TextPart) -> dict[int, Stance] | None:
        del text
        return read_stances(answer, part.numbers)


_MARKS = " \n\t`\"'\u201c\u201d\u2018\u2019\u00ab\u00bb"
_NO_QUOTE = frozenset(("none", "n/a", "null", "nothing"))


@dataclass(frozen=True)
class Quotation:
    """Words of a text.

    Args:
        start: of the words in the text's stored form
            (:func:`~nlp_retrieval.systems.evidence.index.passages.normal_text`), in characters.
        end: of the words.
        content: the exact text of the span.
        sentences: span of the whole sentences around them, which may contain words that reverse the meaning.
    """

    start: int
    end: int
    content: str
    sentences: Span


class Quote(FullTextModule[str]):
    """Quotes the words of a text that support a claim.

    The model's answer is looked up in the text, and returned only if it is there word for word; only white space may differ,
    and the text's own words are returned. That they support the claim is the model's opinion.

    Examples:
        >>> quote = Quote(LanguageModel("openai/gpt-4o-mini"))
        >>> quote.quote("Blue whales eat tons of krill.", Path("report.md").read_text()).content  # doctest: +SKIP
        'Blue whales eat four tons of krill a day'
    """

    what = "quote"
    fields: ClassVar = {"quote": ("claim", "passages", "quote")}

    def quote(self, claim: str, text: str) -> Quotation | None:
        """Return the words of a text that support a claim; None if the model gives none that are there.

        Args:
            claim: the statement that cites the text.
            text: the whole text.

        Raises:
            QueryError: the claim is not a string.
            ItemError: the text is empty.
            DependencyError: DSPy is not installed.
        """
        return self.quote_all([claim], [text])[0]

    def quote_all(self, claims: Sequence[str], texts: Sequence[str]) -> list[Quotation | None]:
        """Return a quotation of each text for its claim; all are asked in one batch.

        Args:
            claims: one per text.
            texts: as many.
        """
        asked, numbered = checked_pairs(claims, texts, "claim", "claims")
        parts = [self.parts(claim, text) for claim, text in zip(asked, numbered, strict=True)]
        return [
            next((quotation for answer in answers if answer and (quotation := _quotation(answer, text)) is not None), None)
            for text, answers in zip(numbered, self.ask(asked, numbered, parts), strict=True)
        ]

    def read(self, answer: object, text: NumberedText, part: TextPart) -> str | None:
        """Return the quotation in an answer, empty if it says that there is none; None for one that is not in the text."""
        words = unwrapped(answer)
        if not isinstance(words, str):
            return None
        words = words[:LONGEST_ANSWER].strip()
        if words.strip(_MARKS + ".").lower() in _NO_QUOTE:
            return ""
        begin, end = text.spans[part.numbers[0] - 1][0], text.spans[part.numbers[-1] - 1][1]
        bare = words.strip(_MARKS)
        forms = (words, bare.partition("] ")[2] if bare.startswith("[") else "")
        return next((form for form in forms if located(form, text.text, begin, end) is not None), None)


def _quotation(words: str, text: NumberedText) -> Quotation | None:
    span = located(words, text.text)
    return None if span is None else Quotation(*span, text.text[slice(*span)], sentences_around(span, text.text))
