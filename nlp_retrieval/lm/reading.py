"""Reading phrases or a passage from a model's answer, and repairing what can be repaired.

Models think aloud, number their lines, quote them, fence them, wrap them in JSON of their own design, begin with "Here are",
repeat the question and do not stop. None of that is an error; an answer without a usable word is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from nlp_retrieval.core.files.json_text import is_deeper
from nlp_retrieval.core.queries import has_no_words, has_only_stop_words

_FENCE = re.compile(r"^[^\S\n]*```\w*[^\S\n]*$", re.MULTILINE)
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
"""Characters of an answer that are read; a model that does not stop is cut off here."""

_DEEPEST = 5

_THOUGHT = (
    r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflections?|reflect|analysis|scratch_?pad|(?:inner_|internal_)?monologue"
    r"|deliberation)(?:[_ -]?process)?"
)
_THOUGHT_MARK = re.compile(
    r"(?:(?:<|\\u003c|\u25c1)(?P<end>\\?/)?\|?(?P<side>(?:begin|start|end)_(?:of_)?)?(?:\w{1,12}[_:]|ant)?"
    + _THOUGHT
    + r"(?:\s[^<>\n]{0,200}?)?(?P<alone>/)?\|?(?:>|\\u003e|\u25b7))"
    r"|\[(?P<square_end>/)?(?-i:THINK)\]"
    r"|(?:<\|channel>|<unused94>)\s?(?:thought|analysis)\b|(?P<channel_end><channel\|>|<unused95>)",
    re.IGNORECASE,
)
"""Marks around a model's thoughts, such as ``<think>``, ``<seed:think>``, ``<|START_THINKING|>`` and ``[THINK]``."""

_CHANNEL = re.compile(r"<\|(?:channel|message)\|>")
_FINAL_CHANNEL = re.compile(r"(?:<\|channel\|>|\A)\s{0,9}final\b[^\n]{0,60}?<\|message\|>", re.IGNORECASE)
_CHANNEL_ENDS = re.compile(r"<\|(?:end|return|start|call|channel)\|>")
_SPOKEN = (
    (re.compile(r"\A\s{0,99}(?:assistant)?analysis(?=[A-Z\"'])"), re.compile(r"assistant\s?final\s?")),
    (
        re.compile(r"\A\W{0,9}here(?:'s| is) my thought process\s?:", re.I),
        re.compile(r"here(?:'s| is) my response\s?:\W?", re.I),
    ),
    (re.compile(r"\A\s{0,99}Thinking\.\.\.\s"), re.compile(r"\.\.\.done thinking\.")),
)
"""Beginnings and ends of thoughts without marks: a chat template's lost marks, and words that models were trained on."""

_ANSWER_MARK = re.compile(
    r"</?(?:final_?)?(?:answer|response|solution|output)>|<\|(?:begin|start|end)_(?:of_)?(?:solution|response)\|>"
    r"|<\|(?:end|return|im_end|eot_id)\|>",
    re.IGNORECASE,
)
_FIELD_MARK = re.compile(r"\[\[ ## (?!completed)\w+ ## \]\]")
_THOUGHT_KEY = re.compile(_THOUGHT, re.IGNORECASE)


class UnusableAnswerError(ValueError):
    """An unusable answer; the message gives the reason, as half a sentence."""


def final_answer(text: str) -> str | None:
    """Return an answer without the model's thoughts before it; None if it only thinks.

    An answer that breaks off within a thought does not count, because it may be a draft. Thoughts without an opening mark, for
    instance when a chat template wrote it, end at the last closing mark.
    """
    if (values := _json_with_thoughts(text)) is not None:
        return json.dumps(_without_thoughts(values), ensure_ascii=False)
    final = _visible_part(text)
    if final is None or (final is text and _THOUGHT_MARK.search(text) is None):
        return final
    pieces: list[str] = []
    begin, thinking = 0, False
    for mark in _THOUGHT_MARK.finditer(final):
        if not thinking:
            pieces.append(final[begin : mark.start()])
        if _closes(mark):
            if not thinking:
                pieces.clear()
            thinking = False
        elif not mark["alone"]:
            thinking = True
        begin = mark.end()
    rest = final[begin:]
    if not set(_FIELD_MARK.findall(rest)).isdisjoint(_FIELD_MARK.findall("".join(pieces))):
        pieces.clear()  # the part before the thoughts was answered again
    return None if thinking else _without_marks("".join([*pieces, rest]))


def _json_with_thoughts(text: str) -> object:
    """Return the content of an answer that is all JSON, if there are marks of thoughts in it; else None."""
    bare = _FENCE.sub("", text).strip()
    if bare[:1] not in ("{", "[") or _THOUGHT_MARK.search(bare) is None or is_deeper(bare):
        return None
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        return None


def _without_thoughts(value: object) -> object:
    if isinstance(value, str):
        return final_answer(value) or ""
    if isinstance(value, dict):
        return {key: _without_thoughts(part) for key, part in value.items()}
    return [_without_thoughts(part) for part in value] if isinstance(value, list) else value


def _closes(mark: re.Match[str]) -> bool:
    return bool(mark["end"] or mark["square_end"] or mark["channel_end"] or (mark["side"] or "").lower().startswith("end"))


def _visible_part(text: str) -> str | None:
    """The part of an answer that is meant for the reader, by a chat template's channels or by the model's own words."""
    if _CHANNEL.search(text):
        finals = [match.end() for match in _FINAL_CHANNEL.finditer(text)]
        if not finals:
            return None
        end = _CHANNEL_ENDS.search(text, finals[-1])
        return text[finals[-1] : end.start() if end else len(text)]
    for begins, ends in _SPOKEN:
        if begins.match(text):
            last = [match.end() for match in ends.finditer(text)]
            return text[last[-1] :] if last else None
    return text


def _without_marks(text: str) -> str | None:
    """An answer after thoughts, without the marks around it; None if it is empty."""
    return _ANSWER_MARK.sub("", text).strip() or None


def _is_empty(answer: str) -> bool:
    """Return whether an answer has no word, or English stop words alone: searching for it would not help a query."""
    return has_no_words(answer) or has_only_stop_words(answer)


def read_phrases(answer: object, claim: str, most: int, max_words: int) -> list[str] | None:
    """Return the search phrases in an answer.

    Args:
        answer: a list, or text that holds one as JSON or as lines.
        claim: the claim in question; a phrase that repeats it is left out.
        most: the most phrases to return.
        max_words: a longer phrase is cut after this many words.

    Returns:
        Distinct phrases, in order, without those of only stop words; None if there are none.
    """
    phrases: dict[tuple[str, ...], str] = {}
    words_of_claim = _words(claim)
    for part in _parts(answer):
        phrase = _trimmed(part, max_words)
        words = _words(phrase)
        if _is_empty(phrase) or words == words_of_claim or phrase.casefold() in _NOTHING:
            continue
        phrases.setdefault(words, phrase)
        if len(phrases) == most:
            break
    return list(phrases.values()) or None


def read_passage(answer: object, query: str, max_words: int) -> str | None:
    r"""Return the passage in an answer, as one line, cut after ``max_words`` words.

    Returns:
        The passage; None if it has no word, has only stop words, or only repeats the query.

    Examples:
        >>> read_passage("Whales eat krill\nand small fish.", "what do whales eat?", max_words=4)
        'Whales eat krill and'
    """
    if not isinstance(answer, str):
        return None
    text = _trimmed(_FENCE.sub("", _text_of(answer)), max_words)
    return None if _is_empty(text) or _words(text) == _words(query) else text


def read_line(answer: object, max_words: int) -> str | None:
    """Return an answer as one line, without fences and quotes around it, cut after ``max_words`` words.

    Returns:
        The line, which may be a stop word such as "no"; None if it has neither letter nor digit.
    """
    if not isinstance(answer, str):
        return None
    line = " ".join(_FENCE.sub("", _text_of(answer)).strip().strip(_QUOTES + ",[]{} ").split()[:max_words])
    return line if any(map(str.isalnum, line)) else None


def read_object(text: str) -> dict[str, object] | None:
    """Return the JSON object in a text, even between other words; None if there is none.

    Examples:
        >>> read_object('The answer is: {"passages": [2, 3]}')
        {'passages': [2, 3]}
    """
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
    """Return the text in an answer that is only a JSON object or list around one text; any other answer as it is.

    Examples:
        >>> unwrapped('{"answer": "krill"}')
        'krill'
    """
    if not isinstance(answer, str):
        return answer
    text = _FENCE.sub("", _text_of(answer))
    try:
        value = None if is_deeper(text) else json.loads(text)
    except (ValueError, RecursionError):
        return answer
    texts = _spoken_values(value) if isinstance(value, dict) else value
    return texts[0] if isinstance(texts, list) and len(texts) == 1 and isinstance(texts[0], str) else answer


def _text_of(answer: str) -> str:
    """The part of an answer that is read, without halves of surrogate pairs, which no engine or file accepts."""
    return _HALF_OF_A_PAIR.sub("", answer[:LONGEST_ANSWER])


def _parts(answer: object, depth: int = 0) -> Iterator[str]:
    if isinstance(answer, str):
        text = _FENCE.sub("", _text_of(answer)).strip()
        entries = _json_list(text)
        if entries is not None:
            yield from _parts(entries, depth + 1)
            return
        for line in text.splitlines():
            bare = _BULLET.sub("", " ".join(line.split()))
            if not bare.endswith(":"):  # "Here are three phrases:"
                yield from _BETWEEN.split(bare)
    elif isinstance(answer, Sequence | Mapping) and depth <= _DEEPEST:
        for part in _spoken_values(answer) if isinstance(answer, Mapping) else answer:
            yield from _parts(part, depth + 1)


def _json_list(text: str) -> list[object] | None:
    """The JSON list in a text, or the values of its JSON object, even between other words."""
    for opening, closing in ("[]", "{}"):
        begin, end = text.find(opening), text.rfind(closing)
        if 0 <= begin < end and not is_deeper(text[begin : end + 1]):
            try:
                value = json.loads(text[begin : end + 1])
            except (ValueError, RecursionError):
                continue
            return value if isinstance(value, list) else _spoken_values(value)
    return None


def _spoken_values(value: Mapping[str, object]) -> list[object]:
    """The values of an object, without those whose keys say that they are thoughts, if there are others."""
    spoken = [part for key, part in value.items() if not _THOUGHT_KEY.fullmatch(str(key))]
    return spoken or list(value.values())


def _trimmed(text: str, max_words: int) -> str:
    pieces = _BULLET.sub("", text).strip().strip(_QUOTES + ",[]{} ").split()
    return " ".join(pieces[:max_words])


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))
