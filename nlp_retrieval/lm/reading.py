"""Reading phrases, a passage or an object from a model's answer.

Models number their lines, fence them, wrap them in JSON of their own design, with a comma too many or Python's quotes, begin
with "Here are", repeat the question, break off and do not stop. None of that is an error; a refusal, or an answer without a
usable word, is None. The texts themselves stay as the model wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from nlp_retrieval.core.files.opening import parse_json
from nlp_retrieval.core.queries import has_no_words, has_only_stop_words

_FENCE = re.compile(r"^[^\S\n]*```\w*[^\S\n]*$", re.MULTILINE)
_BULLET = re.compile(
    r"^\s*(?:[-*\u2022\u2013\u2014]+\s+"  # bullets and dashes
    r"|\(?\d{1,2}[.):]\s+|\(?[a-h]\)\s+|\[\d{1,2}\]\s+"  # 1. (2) 3: a) [1]
    r"|(?:search )?(?:phrase|query|queries)s?(?: ?\d{1,2})?\s*:\s*)+",  # Phrase 1:
    re.IGNORECASE,
)
_JSON_BEGINS = re.compile(r"""\s*(?:\[\s*["'{\[]|\{\s*(?:["']|\w+\s*:))""")
_REFUSAL = re.compile(
    r"\W*(?:(?:I'?m|I am) (?:very |so )?sorry\b|Sorry, (?:but )?I\b|I apologi[sz]e\b|Es tut mir leid\b|Lo siento, "
    r"|As an? AI(?: language model| assistant| model)?,? I\b"
    r"|Leider kann ich\b|(?:Je suis )?Désolée?, (?:mais )?je\b|Je suis désolée?\b"
    r"|I (?:can ?not|can't|am unable to|am not able to|'m unable to|won't) (?:help|assist|answer|provide|comply|fulfil|generate"
    r"|create|write|find|access|browse|do)\b)"  # case counts: "I'm Sorry" is a song
)
_WORD = re.compile(r"\w+")
_HALF_OF_A_PAIR = re.compile("[\ud800-\udfff]")
LONGEST_ANSWER = 20_000
"""Characters of an answer that are read; a model that does not stop is cut off here."""


def final_answer(text: str) -> str | None:
    """Return an answer without the thoughts before it (``<think>...</think>``); None if it only thinks.

    A chat template may have written the opening mark itself. An answer that breaks off within a thought may be a draft.
    """
    _, closing, answer = text.rpartition("</think>")
    if "<think>" in answer:
        return None
    return answer.strip() or None if closing else text


def is_refusal(answer: str) -> bool:
    """Return whether an answer begins as those do in which a model declines to answer."""
    return _REFUSAL.match(answer.replace("\u2019", "'")) is not None


def read_phrases(answer: object, claim: str, most: int, max_words: int) -> list[str] | None:
    """Return distinct search phrases in a list, or in text that holds one as JSON or as lines; None if there are none."""
    phrases: dict[tuple[str, ...], str] = {}
    words_of_claim = _words(claim)
    for part in _parts(answer):
        phrase = " ".join(part.split()[:max_words])
        words = _words(phrase)
        if not _says_something(phrase) or words == words_of_claim or phrase.casefold() in ("null", "none", "n/a"):
            continue
        phrases.setdefault(words, phrase)
        if len(phrases) == most:
            break
    return list(phrases.values()) or None


def read_passage(answer: object, query: str, max_words: int) -> str | None:
    r"""Return an answer as one line, cut after ``max_words`` words; None if it only has stop words, or repeats the query.

    Examples:
        >>> read_passage("Whales eat krill\nand small fish.", "what do whales eat?", max_words=4)
        'Whales eat krill and'
    """
    text = read_line(answer, max_words)
    return text if text and _says_something(text) and _words(text) != _words(query) else None


def read_line(answer: object, max_words: int) -> str | None:
    """Return an answer as one line, cut after ``max_words`` words; None if it has neither letter nor digit."""
    if not isinstance(answer, str):
        return None
    line = " ".join(_unfenced(answer).split()[:max_words])
    return line if any(map(str.isalnum, line)) else None


def read_object(text: str) -> dict[str, object] | None:
    """Return the JSON object in a text, even between other words; None if there is none.

    Examples:
        >>> read_object('The answer is: {"passages": [2, 3]}')
        {'passages': [2, 3]}
    """
    value = _json_in(_unfenced(text), "{", "}")
    return value if isinstance(value, dict) else None


def unwrapped(answer: object) -> object:
    """Return the text in an answer that is only a JSON object or list around one text; any other answer as it is."""
    text = _unfenced(answer).strip() if isinstance(answer, str) else ""
    value = _json_in(text, text[:1], text[-1:]) if (text[:1], text[-1:]) in (("{", "}"), ("[", "]")) else None
    texts = list(value.values()) if isinstance(value, dict) else value
    return texts[0] if isinstance(texts, list) and len(texts) == 1 and isinstance(texts[0], str) else answer


def _says_something(answer: str) -> bool:
    """Return whether an answer is no refusal, and has more than English stop words: searching for it may help a query."""
    return not (has_no_words(answer) or has_only_stop_words(answer) or is_refusal(answer))


def _unfenced(answer: str) -> str:
    """The part of an answer that is read, without halves of surrogate pairs, which no engine or file accepts."""
    return _FENCE.sub("", _HALF_OF_A_PAIR.sub("", answer[:LONGEST_ANSWER]))


def _json_in(text: str, opening: str, closing: str) -> object:
    """The JSON value between the first opening and the last closing bracket; None if there is none."""
    begin, end = text.find(opening), text.rfind(closing)
    if not 0 <= begin < end:
        return None
    part = text[begin : end + 1]
    try:
        return parse_json(part)
    except ValueError:
        if not _JSON_BEGINS.match(part):
            return None
    try:
        from json_repair import repair_json  # comes with DSPy

        return parse_json(repair_json(part))
    except (ImportError, ValueError, RecursionError):
        return None


def _parts(answer: object, depth: int = 0) -> Iterator[str]:
    if isinstance(answer, str):
        text = _unfenced(answer).strip()
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and all(map(_JSON_BEGINS.match, lines)):
            yield from _parts(lines, depth + 1)
            return
        if _JSON_BEGINS.match(text) and not {"]", "}"}.intersection(text):  # it broke off: the texts that are whole
            text = text[: text.rfind('",') + 1] + "]"
        for value in (_json_in(text, "[", "]"), _json_in(text, "{", "}")):
            is_citation = isinstance(value, list) and value != [] and all(isinstance(part, int) for part in value)  # as [2]
            if value is not None and not is_citation:
                yield from _parts(value, depth + 1)
                return
        plain = [said for line in text.splitlines() if not (said := " ".join(line.split())).endswith(":")]  # "Here is one:"
        for line in [line for line in plain if _BULLET.match(line)] or plain:
            yield _BULLET.sub("", line)
    elif isinstance(answer, Sequence | Mapping) and depth <= 5:
        for part in answer.values() if isinstance(answer, Mapping) else answer:
            yield from _parts(part, depth + 1)


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
