"""Words and names of a claim, and the names that a passage lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from nlp_retrieval.text import FUNCTION_WORDS, dates_of, month_of, months_named, sentences_of, spans_of, words_of

# Content words of a text, for comparison with another, without their endings.

_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 4
_NAME_ENDINGS = ("ians", "ian", "ese", "ish", "ans", "an", "es", "s", "n")


def stemmed(text: str) -> list[str]:
    """Return the words of a text except function words, in order, without common endings if four letters are left."""
    return [_stem(word) for word in words_of(text) if word not in FUNCTION_WORDS]


@lru_cache(131_072)
def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) == 4 and word.endswith(("se", "xe")) else word  # "buses", "taxes"


_OF_ONE_PLACE = {
    word: f"={words.split()[0]}"
    for words in """
    german germany; french france; spanish spain; italian italy; british britain; english england; irish ireland; scottish
    scotland; welsh wales; dutch netherlands; belgian belgium; flemish flanders; swiss switzerland; danish denmark; swedish
    sweden; norwegian norway; finnish finland; icelandic iceland; polish poland; czech czechia; slovak slovakia; hungarian
    hungary; greek greece; turkish turkey; portuguese portugal; catalan catalonia; ukrainian ukraine; cypriot cyprus;
    argentine argentinian argentina; peruvian peru; mexican mexico; canadian canada; brazilian brazil; moroccan morocco;
    kenyan kenya; egyptian egypt; chinese china; thai thailand; filipino philippine philippines; vietnamese vietnam; israeli
    israel; iraqi iraq; pakistani pakistan; lebanese lebanon; american america states usa; venetian venice;
    viennese vienna; parisian paris; athenian athens; television tv
    """.split(";")
    for word in words.split()
}
"""Names of a place and of what belongs to it, whose endings do not show it."""


@lru_cache(131_072)
def _name_stems(word: str) -> frozenset[str]:
    """Return a word of a name without each of its endings: "ombrian" is "ombr", "ombri" and "ombria"."""
    of_place = [_OF_ONE_PLACE[form] for form in (word, word.removesuffix("s")) if form in _OF_ONE_PLACE]
    return frozenset(
        [
            word,
            *of_place,
            *(word[: -len(end)] for end in _NAME_ENDINGS if word.endswith(end) and len(word) - len(end) >= _SHORTEST_STEM),
        ]
    )


@lru_cache(32)
def sentence_words(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Return the sentences of a text: begin, end, and the words of :func:`stemmed`."""
    return tuple((begin, end, frozenset(stemmed(text[begin:end]))) for begin, end in sentences_of(text))


# Names in a claim, and finding them in a passage: capitalised words, abbreviations and their expansions.
#
# A name is a run of words within a sentence that do not begin with a lower-case letter; at the beginning of a sentence, common
# words do not count. A passage has a name if it has each of its words, or its initials. Of "HIV-positive" and "M2-phenotype"
# only the part with a capital or a digit is looked up. The first word of a claim is not looked up, since it may be capitalised
# only as such ("Reducing H3K4me3"). A date of the passage ("2019-03-12") counts as its month, and the month of a whole date
# ("12 March") is not looked up, because dates are compared separately.

_TOKEN = re.compile(r"[^\W_][\w'\u2019.&+-]*[\w+]|[^\W_]")
_PART = re.compile(r"[^\W_]+")
_JOINING = frozenset({"of", "the", "and", "de", "von", "van", "der", "la", "le", "du"})
_BREAK = re.compile(r"[,;:()\"\u201c\u201d.!?]")
_MOST = 100
_LONG_FORM = 120
"""Characters before "(HIV)" in which its words may be."""
_LONGEST_ABBREVIATION = 8
_AUTHORS = re.compile(r"\s?(?:(?:and|&)\s[A-Z][\w'\u2019-]+\s?)?,?\s?et\s?al\b")
_AUTHORS_IN_BRACKETS = re.compile(r"\([^()]*(?:\bet al\b|[a-z],\s?(?:19|20)\d\d[a-z]?\b)[^()]*\)")


def names_of(claim: str) -> list[tuple[int, int]]:
    """Return the spans of the names of a claim, in characters; at most 100."""
    spans: list[tuple[int, int]] = []
    begin = end = -1
    tokens = list(_TOKEN.finditer(claim))
    capitals = sum(_is_capital(token[0]) for token in tokens)
    shouting = capitals > max(3, 0.8 * len(tokens))
    starts = {begin for begin, _ in sentences_of(claim)}
    for number, token in enumerate(tokens):
        word = token[0]
        if shouting and not word.isupper():
            continue
        apart = begin >= 0 and _BREAK.search(claim, end, token.start())
        begins = number == 0 or token.start() in starts
        plain = begins and _is_common(word) and not _begins_name(claim, tokens[number:])
        if _is_capital(word) and not plain and word.lower() not in FUNCTION_WORDS:
            if begin < 0 or apart:
                spans += [(begin, end)] if begin >= 0 else []
                begin = token.start()
            end = token.end()
        elif begin >= 0 and (word.lower() not in _JOINING or apart):
            spans.append((begin, end))
            begin = -1
        if len(spans) == _MOST:
            return spans
    spans += [(begin, end)] if begin >= 0 else []
    return [span for span in spans if _is_name_in_german(claim, span, starts)] if _is_german(claim) else spans


_NUMBERED = re.compile(
    r"\b(?P<kind>phase|type|grade|stage|class|flight|season|episode|version|chapter|volume|route|channel|category|tier|generation"
    r"|vitamin|hepatitis|influenza|line|district|ward|zone|group|cohort|arm|unit|reactor|block|plant|site|terminal|platform|round"
    r"|wave|step|scenario|option|trial|study|experiment|level|section|part|table|figure|fig|article|model|page)[\s-]"
    r"(?P<which>\d{1,4}|(?-i:[IV]{1,4}|[A-K]\d{0,2}))\b"
    r"(?![.,]?\d|\s?[-\u2013/%]|\s(?:and|or|to)\s(?:\d|(?-i:[A-K]|[IV]+)\b))",
    re.IGNORECASE,
)
_ROMAN = {"I": "1", "II": "2", "III": "3", "IV": "4"}
_ORDINALS = {word: str(number) for number, word in enumerate("first second third fourth fifth sixth seventh eighth".split(), 1)}
_IN_ORDER = re.compile(
    rf"\b(?P<which>{'|'.join(_ORDINALS)}|\d{{1,3}}(?=st|nd|rd|th))(?:st|nd|rd|th)?[\s-]"
    r"(?P<kind>quarter|century|half|edition|floor|grade|round|season|trimester|semester|division|term|generation)\b",
    re.IGNORECASE,
)


@lru_cache(64)
def numbered_things(text: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the things that a number or a letter tells apart from others of their kind, as "type 2", with their spans."""
    matches = [*_NUMBERED.finditer(text), *_IN_ORDER.finditer(text)]
    things = ((match["kind"].lower(), match["which"], match.span()) for match in matches)
    return {
        (kind, _ROMAN.get(which.upper()) or _ORDINALS.get(which.lower()) or which.upper()): span for kind, which, span in things
    }


_GERMAN = re.compile(
    r"\b(?:der|die|das|dem|den|des|und|ist|sind|war|waren|wurden?|ein|eine[nmrs]?|im|zum|zur|vom|von|mit|f\u00fcr|auf|bei|nicht|sich|auch"
    r"|haben?|hatten?|als|nach|aus|\u00fcber|zwischen|ohne)\b"
)
_ENGLISH = re.compile(r"\b(?:the|of|and|to|is|are|was|were|that|with|for|by)\b")


def _is_german(text: str) -> bool:
    """Return whether a text is in German, where nouns are capitalised."""
    return len(_GERMAN.findall(text)) > max(1, len(_ENGLISH.findall(text)))


def _is_name_in_german(claim: str, span: tuple[int, int], starts: set[int]) -> bool:
    """Return whether a capitalised run is more than a noun: several words, or one with capitals or digits inside."""
    words = claim[slice(*span)].split()
    words = words[1:] if span[0] in starts and _is_common(words[0]) else words
    return len(words) > 1 or any(not _is_common(word) for word in words)


def unmatched_names(claim: str, passage: str) -> list[str]:
    """Return the names of a claim with a word that a passage lacks."""
    there = words_of(passage)
    stems, joined = frozenset().union(*map(_name_stems, there)), "".join(there)
    has_month = any(month_of(word) for word in words_of(claim))
    months = months_named(passage) if has_month else frozenset()
    dates = [date for date in dates_of(claim) if date.is_full] if has_month else []
    claimed = list(zip(words_of(claim), spans_of(claim), strict=True))
    authors = [match.span() for match in _AUTHORS_IN_BRACKETS.finditer(claim)]
    missing = []
    for begin, end in names_of(claim):
        if _AUTHORS.match(claim, end) or any(first < begin and end <= last for first, last in authors):
            continue
        lacking = [
            word
            for part_begin, part_end in _parts_to_find(claim, begin, end)
            for word, (word_begin, word_end) in claimed
            if word_begin < part_end
            and part_begin < word_end
            and len(word) > 1
            and stems.isdisjoint(_name_stems(word))
            and not (len(word) > 3 and word in joined)
            and not (claim[word_begin:word_end].isupper() and _as_initials(claim[word_begin:word_end], [word], passage))
            and not (
                month_of(word)
                and (month_of(word) in months or any(date_span.begin < end and begin < date_span.end for date_span in dates))
            )
        ]
        name = claim[begin:end]
        words = [word for word in words_of(name) if word not in _JOINING]
        before = claim[max(0, begin - _LONG_FORM) : begin] if claim[begin - 1 : begin] == "(" else ""
        explained = before != "" and (_as_initials(name, words, before) or _abbreviates(name, before))
        if lacking and not explained and not _as_initials(name, words, passage) and not _by_last_name(name, lacking, passage):
            missing.append(name)
    return missing


def _by_last_name(name: str, lacking: Sequence[str], passage: str) -> bool:
    """Return whether a passage names somebody by the last name alone: "Hillenburg" for "Stephen Hillenburg"."""
    first, _, last = name.rpartition(" ")
    if not first or words_of(last)[-1:] == () or words_of(last)[-1] in lacking:
        return False
    if re.search(rf"\b{re.escape(last.lower())}\b", passage) is not None:
        return False
    places = re.finditer(rf"\b{re.escape(last)}\b(?!\s[A-Z])", passage)
    before = (passage[max(0, place.start() - _LONG_FORM) : place.start()].split()[-1:] for place in places)
    return any(not words or not words[0][0].isupper() or words[0][-1] in ".,;:!?" for words in before)


def _parts_to_find(claim: str, begin: int, end: int) -> list[tuple[int, int]]:
    """Return the spans of the parts of a name to look up."""
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
    """Return whether the first word begins a name: the next one, after only white space, is capitalised."""
    return len(tokens) > 1 and _is_capital(tokens[1][0]) and claim[tokens[0].end() : tokens[1].start()].isspace()


def _as_initials(name: str, words: list[str], passage: str) -> bool:
    """Return whether the name is an abbreviation of words in the passage, or the passage abbreviates it."""
    if len(words) > 1:
        initials = "".join(word[0] for word in words).upper()
        if re.search(rf"\b{re.escape(initials)}s?\b", passage) is not None:
            return True
        if " " in name:
            return False
    letters = re.sub(r"[^A-Z]", "", name)
    if not 2 <= len(letters) <= 6:
        return False
    pattern = r"\b" + r"[\w-]*[\s-]+(?:(?:of|the|and|for|in)\s+)?".join(re.escape(letter) for letter in letters)
    return re.search(pattern, passage, re.IGNORECASE) is not None


def _abbreviates(name: str, before: str) -> bool:
    """Return whether an abbreviation is of the words just before it: they have its letters in order, half as initials."""
    letters = re.sub(r"[^a-z]", "", name.removesuffix("s").lower())
    if len(letters) < 2 or len(name) > _LONGEST_ABBREVIATION:
        return False
    words = words_of(before)[-len(letters) - 2 :]
    rests = [words[first:] for first, word in enumerate(words) if word[0] == letters[0]]
    return any(
        _in_order(letters, "".join(rest)) == len(letters) and 2 * _in_order(letters, [word[0] for word in rest]) >= len(letters)
        for rest in rests
    )


def _in_order(letters: str, text: Iterable[str]) -> int:
    """Return how many of some letters a text has in order."""
    rest, in_order = list(text), 0
    for letter in letters:
        if letter in rest:
            rest, in_order = rest[rest.index(letter) + 1 :], in_order + 1
    return in_order
