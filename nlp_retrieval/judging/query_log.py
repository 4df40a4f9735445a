"""Questions from a log: what people asked, each once, with near-duplicates in one family, and a sample of them.

Two entries are one question if they differ in case, white space, Unicode form (NFKC) or punctuation at the end. Two questions
are near-duplicates if they have the same content words: in any order, inflected (Porter's stems), or with a letter of one word
missing, added, changed or swapped. They are kept, as they may find other passages, but statistics count their family.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nlp_retrieval.core.files.records import plain_name, quoted
from nlp_retrieval.core.models import Query
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.core.unicode import normalize
from nlp_retrieval.errors import ConfigurationError, SourceError
from nlp_retrieval.loaders.files import read_json_file_of_records, read_lines
from nlp_retrieval.loaders.judgements import format_of
from nlp_retrieval.loaders.records import missing_field
from nlp_retrieval.loaders.tables import read_rows
from nlp_retrieval.retrievers.link_graph.tables import stem_of
from nlp_retrieval.text.mentions import FUNCTION_WORDS
from nlp_retrieval.text.surfaces import words_of

_TEXT_NAMES = "query question text search search_term keyword top_queries q input search_query user_query query_text".split()
_LONGEST, _SHORTEST_TYPO = 2_000, 5
_HALF, _MASK = 2**63, 2**64 - 1
_ENDS = " ?!.,;:\u2026\uff1f\uff01\u3002"


@dataclass(frozen=True)
class LoggedQuestions:
    """A sample of the questions of a log, and how many entries it has, unusable and repeated ones, and distinct questions.

    ``families`` counts near-duplicates among the distinct questions once. Each query has ``times`` in its metadata.
    """

    queries: list[Query]
    entries: int
    unusable: int
    repeated: int
    distinct: int
    families: int


def sample_log(path: str | Path, count: int | None = None, *, seed: int = 0, column: str | None = None) -> LoggedQuestions:
    r"""Return a random sample of the different questions of a log, each equally likely.

    Ids depend on the text alone, and a larger sample with the same seed contains the smaller one, so that what was judged stays
    of use.

    Args:
        path: the log: CSV, TSV, JSON, JSON lines, or text with a question per line.
        count: number of questions; None for all.
        seed: of the draw.
        column: the column or field with the question; None for one of the usual names.

    Raises:
        ConfigurationError: the count is below 1.
        SourceError: the file cannot be read, has no such column, or holds no question.

    Examples:
        >>> _ = Path("log.txt").write_text("who eats krill\nWho  eats krill?\nkrill: who eats it\narctic fox\n")
        >>> sample = sample_log("log.txt")
        >>> sample.entries, sample.repeated, sample.distinct, sample.families
        (4, 1, 3, 2)
        >>> sample.queries[0].text, sample.queries[0].metadata
        ('who eats krill', {'times': 2})
    """
    if count is not None and count < 1:
        raise ConfigurationError(f"count={count}; draw at least 1 question")
    entries, spellings = 0, dict[str, Counter[str]]()
    for entry in _entries(path, column):
        entries += 1
        if len(entry) <= _LONGEST and not has_no_words(text := str(without_secrets(entry))):
            spellings.setdefault(_same_question(text), Counter())[" ".join(text.split())] += 1
    if not spellings:
        raise SourceError(f"{path} holds no question with a word in it; give a log with a question per line or row")
    texts = [each.most_common(1)[0][0] for each in spellings.values()]
    families = families_of(texts)
    ids = [f"log-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}" for key in spellings]
    sizes = Counter(families)
    queries = [
        Query(
            query_id=ids[number],
            text=text,
            family=ids[families[number]] if sizes[families[number]] > 1 else None,
            metadata={"times": each.total()},
        )
        for number, (text, each) in enumerate(zip(texts, spellings.values(), strict=True))
    ]
    usable = sum(each.total() for each in spellings.values())
    order = sorted(queries, key=lambda query: random.Random(f"{seed} {query.query_id}").random())  # noqa: S311 -- no secret
    drawn = {query.query_id for query in order[:count]}
    sample = [query for query in queries if query.query_id in drawn]
    return LoggedQuestions(sample, entries, entries - usable, usable - len(queries), len(queries), len(sizes))


def _same_question(text: str) -> str:
    """Return the form in which two entries of a log are one question: ``"who eats krill"`` of ``"Who  eats KRILL?"``."""
    folded = " ".join(normalize("NFKC", normalize("NFKC", text).casefold()).split())
    return folded.rstrip(_ENDS) or folded


def families_of(texts: Sequence[str]) -> list[int]:
    """Return for each question the first one of its family of near-duplicates, by number."""
    keys, numbers = array("q"), array("q")
    for number, text in enumerate(texts):
        for key in _keys(text):
            keys.append(key)
            numbers.append(number)
    order = np.argsort(np.frombuffer(keys, np.int64), kind="stable")
    by_key, by_number = np.frombuffer(keys, np.int64)[order], np.frombuffer(numbers, np.int64)[order]
    same = np.flatnonzero(by_key[1:] == by_key[:-1])
    firsts = list(range(len(texts)))

    def first_of(number: int) -> int:
        while firsts[number] != number:
            firsts[number] = firsts[firsts[number]]
            number = firsts[number]
        return number

    for one, other in zip(by_number[same].tolist(), by_number[same + 1].tolist(), strict=True):
        first, second = sorted((first_of(one), first_of(other)))
        firsts[second] = first
    return list(map(first_of, firsts))


def _keys(text: str) -> set[int]:
    """Return numbers of a question's content words as a set: of all letters, and with a letter less in one of them.

    Questions that are a typo apart have one of these in common. First letters and numbers stay: another one is seldom a typo.
    The number of a set is the sum of those of its words.
    """
    words = words_of(text)
    content = {stem_of(word) for word in words if word not in FUNCTION_WORDS} or set(words)
    whole = sum(map(hash, content))
    sums = {whole}
    for word in content:
        if len(word) >= _SHORTEST_TYPO and word.isalpha():
            rest = whole - hash(word)
            sums.update(rest + hash(word[:cut] + word[cut + 1 :]) for cut in range(1, len(word)))
    return {(each & _MASK) - _HALF for each in sums}


def _entries(path: str | Path, column: str | None) -> Iterator[str]:
    """Yield the text of each entry; empty where a row has none."""
    form = format_of(path)
    if form == "trec":  # any other suffix
        if column is not None:
            raise SourceError(f"{path} is read as text with a question per line, which has no column {column!r}; name it .csv")
        yield from (line for _, line in read_lines(path))
        return
    rows = read_json_file_of_records(path) if form == "json" else read_rows(path)
    field, has_field = column, False
    first: tuple[str, Collection[str]] | None = None
    for location, row in rows:
        first = first or (location, row)
        if field is None:
            by_name = {plain_name(name): name for name in row}
            field = next((by_name[name] for name in _TEXT_NAMES if name in by_name), None)
        if field is None:
            raise SourceError(
                f"{location}: no column has a usual name for a question (found: {quoted(row)}); pass column= and its name, or "
                "call a file with a question per line and without a line of names .txt"
            )
        has_field = has_field or field in row
        value = row.get(field)
        yield value if isinstance(value, str) else ""
    if first and field and not has_field:
        raise missing_field(first[0], "column", field, first[1], _TEXT_NAMES)
