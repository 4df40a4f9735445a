"""The subjects of a text: its entities, proper nouns and phrases, by rules.

The rules need no model. An entity is a run of capitalised words, joined by words such as "of" or "de", or a quoted title; a
proper noun is a capitalised word or a year; a phrase is a run of at least two words without a function word. Words are compared
without case, accents and possessive endings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from nlp_retrieval.text.words import marks, unaccented

_WORD = re.compile(r"[^\W_]+(?:['\u2019.&-][^\W_]+)*")
_QUOTED = re.compile(
    r'"([^"]{2,80})"|\u201c([^\u201d]{2,80})\u201d|[\u300c\u300e\u300a\u3008]([^\u3008-\u300f]{2,80})[\u300d\u300f\u300b\u3009]'
    r"|\u00ab([^\u00ab\u00bb]{2,80})\u00bb|\u201e([^\u201c-\u201e]{2,80})[\u201c\u201d]"
)
_BREAK = re.compile(r"[,;:.!?()\[\]\"“”\n«»„।॥،؛؟\u06d4\u3001\u3002\u3008-\u300f\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]")
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_POSSESSIVE = re.compile(r"['\u2019]s?$")
_JOINTS = frozenset(["of", "the", "de", "la", "le", "du", "des", "da", "di", "do", "dos", "del", "della", "van", "von", "der"])
FUNCTION_WORDS = frozenset(
    """
    a an the this that these those it its he she they his their her them who whom whose which what where when why how and
    or but nor so yet if then than as of in on at by for with from to into onto over under between among during before
    after about against through while is are was were be been being has have had do does did no not both either neither
    each all some any one two three first also same other another there here i we you my our your can could will would
    shall should may might must
    """.split()
)


@dataclass(frozen=True)
class Mentions:
    """Mentions in a text, normalised.

    Args:
        entities: names of one or more words.
        proper_nouns: single words.
        phrases: runs of at least two words.
        words: the whole text as normalised words, with a space before, between and after, to look phrases up in.
    """

    entities: frozenset[str]
    proper_nouns: frozenset[str]
    phrases: frozenset[str]
    words: str


def normalize(text: str) -> str:
    """Return a text in lower case, without accents, punctuation between words and possessive endings."""
    return " ".join(word for word, _ in _words(text))


@cache
def _marked_word() -> re.Pattern[str]:
    """A word whose letters may carry marks, as those of Hindi do."""
    return re.compile(_WORD.pattern.replace(r"[^\W_]+", rf"[^\W_](?:[^\W_]|[{marks()}])*"))


def _quoted(text: str) -> list[str]:
    return ["".join(groups) for groups in _QUOTED.findall(text)]


def _words(text: str) -> Iterable[tuple[str, bool]]:
    """Each word in its compared form, and whether punctuation separates it from the word before."""
    plain = unaccented(text)
    end = 0
    for match in (_WORD if plain.isascii() else _marked_word()).finditer(plain):
        yield _POSSESSIVE.sub("", match.group()).casefold(), _BREAK.search(plain, end, match.start()) is not None
        end = match.end()


@lru_cache(maxsize=50_000)
def mentions_by_rules(text: str) -> Mentions:
    """Find mentions without a model."""
    proper_nouns: set[str] = set(_YEAR.findall(text))
    for run in _capitalised_runs(text):
        proper_nouns.update(normalize(word) for word in run if word.casefold() not in FUNCTION_WORDS | _JOINTS)
    return mentions_of(text, entities_by_rules(text), proper_nouns)


def entities_by_rules(text: str) -> set[str]:
    """Find entities only, without a model; nothing is cached, so that a whole corpus may be read."""
    quoted = {normalize(title) for title in _quoted(text)}
    return (quoted | {normalize(" ".join(run)) for run in _capitalised_runs(text)}) - {""}


def _capitalised_runs(text: str) -> Iterable[list[str]]:
    """Runs of capitalised words, without function words at either end; punctuation ends a run."""
    run: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match.group()
        between = text[end : match.start()]
        apart = "\n" in between or between.strip() not in {"", "'", "\u2019"}
        capital = word[0].isupper() or (word[0].isdigit() and bool(run))
        if run and (apart or not (capital or word in _JOINTS)):
            yield from _trimmed(run)
            run = []
        if capital or run:
            run.append(word)
        end = match.end()
    yield from _trimmed(run)


def _trimmed(run: list[str]) -> Iterable[list[str]]:
    start, stop = 0, len(run)
    while start < stop and run[start].casefold() in FUNCTION_WORDS:
        start += 1
    while start < stop and (run[stop - 1] in _JOINTS or run[stop - 1].casefold() in FUNCTION_WORDS):
        stop -= 1
    if start < stop:
        yield run[start:stop]


def mentions_of(text: str, entities: Iterable[str], proper_nouns: Iterable[str]) -> Mentions:
    """Return the mentions in a text: the given entities and proper nouns, and the phrases, which are found here."""
    words = list(_words(text))
    runs: list[list[str]] = [[]]
    for word, apart in words:
        if apart or word in FUNCTION_WORDS:
            runs.append([])
        if word not in FUNCTION_WORDS:
            runs[-1].append(word)
    return Mentions(
        frozenset(filter(None, entities)),
        frozenset(filter(None, proper_nouns)),
        frozenset(" ".join(run) for run in runs if len(run) > 1),
        f" {' '.join(word for word, _ in words)} ",
    )
