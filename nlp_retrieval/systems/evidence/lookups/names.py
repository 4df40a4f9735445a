"""The names of a claim, and those that a passage lacks.

A name is a run of capitalised words, or a thing of a kind ("type 2"); a passage has it if it has its words or initials.
"""

from __future__ import annotations

import re
from functools import lru_cache

from nlp_retrieval.systems.evidence.lookups.words import KNOWN, content, lines_of, stemmed
from nlp_retrieval.text import FUNCTION_WORDS, dates_of, month_of, months_named, numbers_of, sentences_of, spans_of, words_of

_NAME_ENDINGS = ("ians", "ian", "ese", "ish", "ans", "an", "es", "s", "n")
_SHORTEST_STEM = 4
_TOKEN = re.compile(r"[^\W_][\w'\u2019.&+#-]*[\w+#]|[^\W_]")
_PART = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"\b[A-Z][+#]*(?!\w)")
_JOINING = frozenset({"of", "the", "and", "de", "von", "van", "der", "la", "le", "du"})
_BREAK = re.compile(r"[,;:()\"\u201c\u201d.!?]")
_MOST = 100
_GERMAN = re.compile(r"\b(?:{})\b".format(KNOWN["german"].replace(" ", "|")))
_ENGLISH = re.compile(r"\b(?:the|of|and|to|is|are|was|were|that|with|for|by)\b")


def names_of(claim: str) -> list[tuple[int, int]]:
    """Return the spans of the names of a claim, in characters; at most 100."""
    spans: list[tuple[int, int]] = []
    begin = end = -1
    tokens = list(_TOKEN.finditer(claim))
    starts = {start for start, _ in sentences_of(claim)}
    for number, token in enumerate(tokens):
        word = token[0]
        apart = begin >= 0 and _BREAK.search(claim, end, token.start())
        begins = number == 0 or token.start() in starts
        plain = begins and _is_common(word) and not _begins_name(claim, tokens[number : number + 2])
        if _is_capital(word) and not plain and word.lower() not in FUNCTION_WORDS:
            if begin < 0 or apart:
                spans += [(begin, end)] if begin >= 0 else []
                begin = token.start()
            end = token.end()
        elif begin >= 0 and (word.lower() not in _JOINING or apart):
            spans.append((begin, end))
            begin = -1
    spans += [(begin, end)] if begin >= 0 else []
    if len(_GERMAN.findall(claim)) > max(1, len(_ENGLISH.findall(claim))):
        spans = [span for span in spans if _is_name_in_german(claim, span, starts)]
    return spans[:_MOST]


def missing_names(claim: str, passage: str) -> list[str]:
    """Return the names of a claim with a word that a passage lacks.

    The first word of a claim is not looked up, since it may be capitalised only as such, nor the month of a whole date.
    """
    there, claimed = words_of(passage), list(zip(words_of(claim), spans_of(claim), strict=True))
    months = months_named(passage)
    dates = [(date.begin, date.end) for date in dates_of(claim) if date.is_full]
    units = [(number.end, number.until + 1) for number in numbers_of(claim) if number.unit]
    numbered = [span for thing, span in numbered_things(claim).items() if thing in numbered_things(passage)]
    stems, joined = frozenset().union(*map(_name_stems, there)), "".join(there)

    def has(word: str, span: tuple[int, int]) -> bool:
        month = month_of(word)
        return (
            not stems.isdisjoint(_name_stems(word))
            or (len(word) > 3 and word in joined)
            or any(begin <= span[0] < end for begin, end in numbered)  # "World War II" is "the Second World War"
            or (month is not None and (month in months or any(begin <= span[0] < end for begin, end in dates)))
        )

    letters, missing = set(_LETTER.findall(passage)), []
    for begin, end in names_of(claim):
        if any(first < begin and end <= last for first, last in units):
            continue
        parts = _parts_to_find(claim, begin, end)
        named = [(word, span) for word, span in claimed if any(span[0] < b and a < span[1] for a, b in parts)]
        lacking = [word for word, span in named if (len(word) > 1 or word.isdigit()) and not has(word, span)]
        name = claim[begin:end]
        other = [one for one in {*_LETTER.findall(name)} - letters if one[1:] or one in "".join(letters)]  # C, not C#
        if other or (lacking and not _abbreviated(name, passage)):
            missing.append(name)
    return missing


@lru_cache(131_072)
def _name_stems(word: str) -> frozenset[str]:
    """Return a word of a name without each of its endings: "ombrian" is "ombr", "ombri" and "ombria"."""
    ends = [end for end in _NAME_ENDINGS if word.endswith(end) and len(word) - len(end) >= _SHORTEST_STEM]
    return frozenset([word, *(word[: -len(end)] for end in ends)])


def _parts_to_find(claim: str, begin: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of the parts of a name to look up: of "HIV-positive" only "HIV"."""
    parts = list(_PART.finditer(claim, begin, end))
    named = [part for part in parts if part[0].lower() not in _JOINING and (_is_capital(part[0]) or part[0][0].isdigit())]
    begins_claim = _PART.search(claim, 0, begin) is None
    named = named[1:] if begins_claim and len(named) > 1 and _is_common(named[0][0]) else named
    return [part.span() for part in named]


def _is_capital(word: str) -> bool:
    """Return whether a word has a capital letter, or is a letter with digits, as "p53" is."""
    return any(letter.isupper() for letter in word) or (word[0].isalpha() and word[-1].isdigit())


def _is_common(word: str) -> bool:
    """Return whether the first word of a sentence may be capitalised only as such."""
    return word[1:].islower() or len(word) == 1


def _begins_name(claim: str, tokens: list[re.Match[str]]) -> bool:
    """Return whether the first of two words begins a name: the next one, after only white space, is capitalised."""
    return len(tokens) > 1 and _is_capital(tokens[1][0]) and claim[tokens[0].end() : tokens[1].start()].isspace()


def _is_name_in_german(claim: str, span: tuple[int, int], starts: set[int]) -> bool:
    """Return whether a capitalised run is more than a noun: several words, or one with capitals or digits inside."""
    words = claim[slice(*span)].split()
    words = words[1:] if span[0] in starts and _is_common(words[0]) else words
    return len(words) > 1 or any(not _is_common(word) for word in words)


def _abbreviated(name: str, passage: str) -> bool:
    """Return whether a passage has the initials of a name, or the words whose initials the name is."""
    initials = "".join(word[0] for word in words_of(name) if word not in _JOINING).upper()
    if len(initials) > 1 and re.search(rf"\b{re.escape(initials)}s?\b", passage):
        return True
    letters = re.sub(r"[^A-Z]", "", name)
    if not 2 <= len(letters) <= 6 or " " in name:
        return False
    written_out = r"\b" + r"[\w-]*[\s-]+(?:(?:of|the|and|for|in)\s+)?".join(map(re.escape, letters))
    return re.search(written_out, passage, re.IGNORECASE) is not None


# Things of one kind, of which each excludes the others: "supplemental hydrogen" beside "supplemental oxygen".

_ROMAN = {"I": "1", "II": "2", "III": "3", "IV": "4"}
_ORDINALS = {word: str(number) for number, word in enumerate("first second third fourth fifth sixth seventh eighth".split(), 1)}
_OF_TEXTS = frozenset("table figure fig page section part article chapter".split())
"""Things that a text has numbers for, whatever it is about."""
_NUMBERED = re.compile(
    rf"\b(?P<kind>{KNOWN['numbered'].replace(' ', '|')}|(?-i:[A-Z\u00c0-\u00de]\w+(?=\s[IVX]{{1,5}}\b)))"
    r"[\s-](?P<which>\d{1,4}|(?-i:[IVX]{1,5}|[A-K]\d{0,2}))\b"
    r"(?![.,]?\d|\s?[-\u2013/%]|\s(?:and|or|to)\s(?:\d|(?-i:[A-K]|[IV]+)\b))",
    re.IGNORECASE,
)
_ORDERED = re.compile(
    rf"\b(?P<which>{'|'.join(_ORDINALS)}|\d{{1,3}}(?=st|nd|rd|th))(?:st|nd|rd|th)?[\s-]"
    rf"(?P<kind>{KNOWN['ordered'].replace(' ', '|')})\b",
    re.IGNORECASE,
)
_KINDS = [[content(thing.replace("/", " ")) for thing in line.split()] for line in lines_of("kinds.txt")]
_THINGS = {form: (thing, frozenset[str]().union(*things) - thing) for things in _KINDS for thing in things for form in thing}
"""The forms of a thing and those of the others of its kind, by each of its forms, stemmed."""


def replaced_things(claim: str, passage: str) -> list[str]:
    """Return the things of a claim that a passage lacks, if it has another of the kind, and none that the claim has."""
    numbered, others_there = numbered_things(claim), numbered_things(passage)
    kinds = {kind for kind, _ in others_there} - {kind for kind, _ in numbered.keys() & others_there.keys()} - _OF_TEXTS
    replaced = [claim[begin:end] for (kind, _), (begin, end) in numbered.items() if kind in kinds]
    words = [word for word in words_of(claim) if word not in FUNCTION_WORDS]
    stems, there = stemmed(claim), content(passage)
    for word, stem in zip(words, stems, strict=True):
        thing, others = _THINGS.get(stem, (frozenset[str](), frozenset[str]()))
        if others & there and others.isdisjoint(stems) and thing.isdisjoint(there):
            replaced.append(word)
    return list(dict.fromkeys(replaced))


@lru_cache(64)
def numbered_things(text: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the things that a number or a letter tells apart from others of their kind, as "type 2", with their spans."""
    matches = [match for pattern in (_NUMBERED, _ORDERED) for match in pattern.finditer(text)]
    things = ((match["kind"].lower().split()[-1], match["which"], match.span()) for match in matches)
    return {
        (kind, _ROMAN.get(which.upper()) or _ORDINALS.get(which.lower()) or which.upper()): span for kind, which, span in things
    }
