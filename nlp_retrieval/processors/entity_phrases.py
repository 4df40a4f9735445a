"""Sub-queries without a language model: the names in a claim, and the things it describes without naming.

A phrase is cut out of the query in the query's own spelling. Mentions come from :mod:`nlp_retrieval.text.mentions`, by rules,
or from a spaCy pipeline; this module decides which to search for, with which neighbouring words, and in which order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Config
from nlp_retrieval.core.components.trust_rules import loads_pipeline, may_set
from nlp_retrieval.text.mentions import FUNCTION_WORDS, Mentions, SpacyMentions, mentions_by_rules, normalize

_CHUNK = re.compile(r"\S+")
_QUOTED = re.compile(r'"([^"]{2,80})"|\u201c([^\u201d]{2,80})\u201d')
_OPENS = re.compile(r"""[(\["\u201c]""")
_CLOSES = re.compile(r"""[,;:.!?)\]"\u201d]$""")
_EDGES = " \t\n,;:.!?()[]\"'\u201c\u201d\u2018\u2019"
_LONGEST = 16  # words of a phrase; a longer run of capitals is a heading, or shouting
_QUOTE, _NAME, _DESCRIPTION, _NUMBER = range(4)


@dataclass(frozen=True)
class _Word:
    """A normalised word of the query, and its position there in characters."""

    text: str
    begin: int
    end: int
    after_break: bool
    """True if punctuation separates the previous word from this one."""


class EntityPhrases(BaseUserQueryProcessor):
    """Searches for the query itself and for two or three specific phrases of it.

    Phrases are, most specific first: quoted titles; names, longest first; descriptions of at least two words that name nothing
    ("swimming pool designer"); years. A title or name includes the nearest words, which give its relation: "director of the
    film Barry Lyndon" gives "director film Barry Lyndon". A query without any such phrase is searched unchanged.

    Args:
        spacy_pipeline: name or folder of a spaCy pipeline that finds names; by default rules find them, without a model.
        max_phrases: most phrases, not counting the query.
        context: most words that a name includes from either side, within its clause and without function words or names.
        keep_query: whether the query itself comes first.

    Examples:
        >>> EntityPhrases(max_phrases=2).process(["Was Stanley Kubrick born before the director of Blade Runner?"])
        [['Was Stanley Kubrick born before the director of Blade Runner?', 'Stanley Kubrick born director', 'born director Blade
        Runner']]
    """

    name = "entity_phrases"
    manifest_may_set = may_set("max_phrases", "context", "keep_query", spacy_pipeline=loads_pipeline)

    def __init__(
        self,
        spacy_pipeline: str | None = None,
        max_phrases: Annotated[int, Field(ge=1)] = 3,
        context: Annotated[int, Field(ge=0)] = 3,
        keep_query: bool = True,
    ) -> None:
        self.spacy_pipeline = spacy_pipeline
        self.max_phrases = max_phrases
        self.context = context
        self.keep_query = keep_query
        self._spacy = SpacyMentions(spacy_pipeline) if spacy_pipeline is not None else None

    def index_identity(self) -> Config:
        return super().index_identity() | ({} if self._spacy is None else self._spacy.identity("spacy_pipeline"))

    def process(self, nlqs: list[str]) -> list[list[str]]:
        mentions = self._spacy.find(nlqs) if self._spacy is not None else [mentions_by_rules(nlq) for nlq in nlqs]
        return [self._sub_queries(nlq, mentioned) for nlq, mentioned in zip(nlqs, mentions, strict=True)]

    def _sub_queries(self, nlq: str, mentions: Mentions) -> list[str]:
        chosen = {normalize(nlq): nlq} if self.keep_query else {}
        limit = self.max_phrases + len(chosen)
        for phrase in _phrases(nlq, mentions, self.context):
            if len(chosen) == limit:
                break
            chosen.setdefault(normalize(phrase), phrase)
        return list(chosen.values()) or [nlq]


def _phrases(query: str, mentions: Mentions, context: int) -> Iterator[str]:
    """The phrases of a query, most specific first; those of one kind and length in the order of the query."""
    words = _words(query)
    quoted = {normalize(straight or curly) for straight, curly in _QUOTED.findall(query)}
    spans = _located(words, (quoted | mentions.entities | mentions.proper_nouns) - FUNCTION_WORDS - {""})
    free = set(range(len(words))) - {position for span in spans for position in span}
    ranked: list[tuple[int, int, int, list[Sequence[int]]]] = []
    for span in spans:
        name = " ".join(words[position].text for position in span)
        kind = _QUOTE if name in quoted else _NUMBER if name.isdigit() else _NAME
        before = [[position] for position in _related(words, range(span.start - 1, -1, -1), free, context)[::-1]]
        after = [[position] for position in _related(words, range(span.stop, len(words)), free, context)]
        ranked.append((kind, -len(span), span.start, [*before, span, *after]))
    ranked += [(_DESCRIPTION, -len(run), run[0], [run]) for run in _descriptions(words, free)]
    known: set[tuple[tuple[int, int], ...]] = set()
    for *_, parts in sorted(ranked, key=lambda one: one[:3]):
        # words without a space between them ("2009/10") have the same range, which may be long
        ranges = tuple((words[places[0]].begin, words[places[-1]].end) for places in parts)
        if ranges not in known:
            known.add(ranges)
            phrase = " ".join(dict.fromkeys(query[begin:end].strip(_EDGES) for begin, end in dict.fromkeys(ranges)))
            if _can_be_searched(phrase):
                yield phrase


def _can_be_searched(phrase: str) -> bool:
    """Return whether engines match any word in it: they skip function words and, most of them, single letters."""
    return any(len(word) > 1 and word not in FUNCTION_WORDS for word in normalize(phrase).split())


def _words(query: str) -> list[_Word]:
    words: list[_Word] = []
    after_break = False
    for chunk in _CHUNK.finditer(query):
        after_break = after_break or _OPENS.match(chunk.group()) is not None
        for text in normalize(chunk.group()).split():
            words.append(_Word(text, chunk.start(), chunk.end(), after_break))
            after_break = False
        after_break = after_break or _CLOSES.search(chunk.group()) is not None
    return words


def _located(words: list[_Word], names: set[str]) -> list[range]:
    """Positions of names, as ranges of words; of overlapping names the first, of those with the same first word the longest."""
    lengths: dict[str, set[int]] = {}
    for name in names:
        parts = name.split()
        lengths.setdefault(parts[0], set()).add(len(parts))
    spans: list[range] = []
    position = 0
    while position < len(words):
        fitting = (
            length
            for length in sorted(lengths.get(words[position].text, ()), reverse=True)
            if length <= min(_LONGEST, len(words) - position)
            and " ".join(word.text for word in words[position : position + length]) in names
        )
        length = next(fitting, 0)
        if length and spans and _only_initials(words, spans[-1].stop, position):
            spans[-1] = range(spans[-1].start, position + length)
        elif length:
            spans.append(range(position, position + length))
        position += max(length, 1)
    return spans


def _only_initials(words: list[_Word], begin: int, end: int) -> bool:
    """Return whether there are only initials between two names, as in "Robert" and "A." before "Iger"."""
    return len(words[end - 1].text) == 1 and all(len(word.text) == 1 for word in words[begin:end])


def _related(words: list[_Word], places: range, free: set[int], limit: int) -> list[int]:
    """The nearest words along ``places``, up to the end of the clause or the next name, without function words."""
    related: list[int] = []
    for position in places:
        ahead = position if places.step > 0 else position + 1
        if len(related) == limit or position not in free or words[ahead].after_break:
            break
        if words[position].text not in FUNCTION_WORDS:
            related.append(position)
    return related


def _descriptions(words: list[_Word], free: set[int]) -> list[list[int]]:
    """Runs of at least two words that are neither part of a name nor function words."""
    runs: list[list[int]] = [[]]
    for position, word in enumerate(words):
        stays = position in free and word.text not in FUNCTION_WORDS
        if runs[-1] and (word.after_break or not stays):
            runs.append([])
        if stays:
            runs[-1].append(position)
    return [run for run in runs if 1 < len(run) <= _LONGEST]
