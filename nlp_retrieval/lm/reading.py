"""Reading phrases or a passage out of what a model wrote, and repairing what can be repaired.

Models number their lines, quote them, fence them, wrap them in JSON of their own design, begin with "Here are", repeat the
question and do not stop. None of that is an error; an answer without a usable word is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from nlp_retrieval.core.files.json_text import is_deeper
from nlp_retrieval.core.queries import has_no_words

_FENCE = re.compile(r"^\s*```\w*\s*$", re.MULTILINE)
_BULLET = re.compile(
    r"^\s*(?:[-*\u2022\u2013\u2014]+\s+"  # bullets and dashes
    r"|\(?\d{1,2}[.):]\s+"  # 1. (2) 3:
    r"|(?:search )?(?:phrase|query|queries)s?(?: ?\d{1,2})?\s*:\s*)+",  # Phrase 1:
    re.IGNORECASE,
)
_QUOTES = "\"'`*_\u201c\u201d\u2018\u2019\u00ab\u00bb"
_BETWEEN = re.compile(r"\s*[;|]\s+|[\"']\s*,\s*[\"']")
_NOTHING = frozenset({"null", "none", "n/a"})
_WORD = re.compile(r"\w+")
_HALF_OF_A_PAIR = re.compile("[\ud800-\udfff]")
LONGEST_ANSWER = 20_000
"""How many characters of an answer are read; a model that does not stop is cut here."""

_DEEPEST = 5


def read_phrases(answer: object, claim: str, most: int, max_words: int) -> list[str] | None:
    """Return the search phrases in an answer.

    Args:
        answer: a list, or text that holds one as JSON or as lines.
        claim: what was asked about; a phrase that repeats it is left out.
        most: the most phrases to return.
        max_words: a longer phrase is cut after this many words.

    Returns:
        Distinct phrases, in order; None where there is none.
    """
    phrases: dict[tuple[str, ...], str] = {}
    taken = _words(claim)
    for part in _parts(answer):
        phrase = _trimmed(part, max_words)
        words = _words(phrase)
        if has_no_words(phrase) or words == taken or phrase.casefold() in _NOTHING:
            continue
        phrases.setdefault(words, phrase)
        if len(phrases) == most:
            break
    return list(phrases.values()) or None


def read_passage(answer: object, query: str, max_words: int) -> str | None:
    """Return the passage in an answer, as one line, cut after ``max_words`` words.

    Returns:
        The passage; None where it has no word, or only repeats the query.
    """
    if not isinstance(answer, str):
        return None
    text = _trimmed(_FENCE.sub("", _text_of(answer)), max_words)
    return None if has_no_words(text) or _words(text) == _words(query) else text


def read_line(answer: object, max_words: int) -> str | None:
    """Return an answer as one line, without fences and quotes around it, cut after ``max_words`` words.

    Returns:
        The line, which may be a stop word such as "no"; None where it has neither letter nor digit.
    """
    if not isinstance(answer, str):
        return None
    line = " ".join(_FENCE.sub("", _text_of(answer)).strip().strip(_QUOTES + ",[]{} ").split()[:max_words])
    return line if any(map(str.isalnum, line)) else None


def read_object(text: str) -> dict[str, object] | None:
    """Return the JSON object in a text, also between other words; None where there is none."""
    text = _text_of(text)
    begin, end = text.find("{"), text.rfind("}")
    if not 0 <= begin < end or is_deeper(text[begin : end + 1]):
        return None
    try:
        value = json.loads(text[begin : end + 1])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def unwrapped(answer: object) -> object:
    """Return the text in an answer that is only a JSON object or list around one text; any other answer as it is."""
    if not isinstance(answer, str):
        return answer
    text = _FENCE.sub("", _text_of(answer))
    try:
        value = None if is_deeper(text) else json.loads(text)
    except (ValueError, RecursionError):
        return answer
    texts = list(value.values()) if isinstance(value, dict) else value
    return texts[0] if isinstance(texts, list) and len(texts) == 1 and isinstance(texts[0], str) else answer


def _text_of(answer: str) -> str:
    """The part of an answer that is read, without halves of surrogate pairs, which no engine or file accepts."""
    return _HALF_OF_A_PAIR.sub("", answer[:LONGEST_ANSWER])


def _parts(answer: object, depth: int = 0) -> Iterator[str]:
    if isinstance(answer, str):
        text = _FENCE.sub("", _text_of(answer)).strip()
        held = _json_list(text)
        if held is not None:
            yield from _parts(held, depth + 1)
            return
        for line in text.splitlines():
            bare = _BULLET.sub("", " ".join(line.split()))
            if not bare.endswith(":"):  # "Here are three phrases:"
                yield from _BETWEEN.split(bare)
    elif isinstance(answer, Sequence | Mapping) and depth <= _DEEPEST:
        for part in answer.values() if isinstance(answer, Mapping) else answer:
            yield from _parts(part, depth + 1)


def _json_list(text: str) -> list[object] | None:
    """The JSON list in a text, or the values of its JSON object, also between other words."""
    for opening, closing in ("[]", "{}"):
        begin, end = text.find(opening), text.rfind(closing)
        if 0 <= begin < end and not is_deeper(text[begin : end + 1]):
            try:
                value = json.loads(text[begin : end + 1])
            except (ValueError, RecursionError):
                continue
            return value if isinstance(value, list) else list(value.values())
    return None


def _trimmed(text: str, max_words: int) -> str:
    pieces = _BULLET.sub("", text).strip().strip(_QUOTES + ",[]{} ").split()
    return " ".join(pieces[:max_words])


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
