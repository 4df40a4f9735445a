"""HotpotQA: questions with their own contexts, some of which support the answer (Yang et al., 2018, https://hotpotqa.github.io)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from pydantic import JsonValue

from nlp_retrieval.core.components.interfaces import BaseLoader, BaseQueryLoader
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.models import Gold, Query, SearchableItem
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.loaders.files import JsonObject, kind
from nlp_retrieval.loaders.json_list import read_json_objects
from nlp_retrieval.loaders.records import as_id, as_text, make_item, make_query, released_field, supporting_titles
from nlp_retrieval.text.item_sentences import SENTENCE_STARTS

__all__ = ["HotpotqaLoader"]

_NO_GOLD = "HotpotQA's test release withholds the supporting facts: use the train or dev release"


class HotpotqaLoader(BaseLoader, BaseQueryLoader):
    """Items, queries and gold from HotpotQA's own release files (``hotpot_dev_distractor_v1.json``).

    The contexts of all questions together are the corpus: one item per title, with the title as its id. If a title has
    different texts, the first is kept and a warning counts the others. While streaming, only two digests per title are held in
    memory. Queries have the release's ``answer``, ``type`` and ``level`` in their metadata, if present.

    With ``sentence_facts``, items also have ``sentence_starts`` and queries ``supporting_facts`` in their metadata, so that an
    answer's supporting facts can be judged. To an index, items with and without them are different.

    Args:
        path: the release file, one JSON list, plain or gzip.
        sentence_facts: whether items hold the starts of the release's sentences, and queries the sentences that support the
            answer.
    """

    name = "hotpotqa"
    manifest_may_set = may_set("sentence_facts", path=READS_FILE)

    def __init__(self, path: str | Path, sentence_facts: bool = False) -> None:
        self.path = path
        self.sentence_facts = sentence_facts

    def stream(self) -> Iterator[SearchableItem]:
        """Yield one item per title, in the order of first occurrence.

        Raises:
            SourceError: the file is missing or malformed.
        """
        seen: dict[bytes, bytes] = {}
        differing = 0
        first = ""
        for place, row in read_json_objects(self.path):
            for title, sentences in _contexts(place, row):
                content, starts = _join(sentences)
                key, text = _digest(title), _digest(content)
                if key not in seen:
                    seen[key] = text
                    metadata: JsonObject = {"title": title}
                    if self.sentence_facts:
                        metadata[SENTENCE_STARTS] = starts
                    yield make_item(place, title, content, metadata)
                elif seen[key] != text:
                    differing += 1
                    first = first or f'"{title}" ({place})'
        if differing:
            warnings.warn(
                f"{self.path}: {differing} contexts have a title seen before with another text, first {first}; "
                "the first text of each title was kept",
                RetrievalWarning,
                stacklevel=2,
            )

    def queries(self) -> list[Query]:
        """Return the questions in the order of the file.

        Raises:
            SourceError: the file is missing or malformed; with ``sentence_facts`` also where a supporting fact names no
                sentence of the question's own contexts.
        """
        queries: list[Query] = []
        for place, query_id, row in self._questions():
            metadata: JsonObject = {field: row[field] for field in ("answer", "type", "level") if field in row}
            if self.sentence_facts:
                metadata["supporting_facts"] = _facts(place, query_id, row)
            text = as_text(place, "question", _field(place, row, "question"))
            queries.append(make_query(place, query_id, text, metadata=metadata))
        return queries

    def gold(self) -> list[Gold]:
        """Return the titles that support each answer, which are item ids, in the order of the questions.

        Raises:
            SourceError: the file is missing or malformed, has no supporting facts, or names one that no context holds.
        """
        gold: list[Gold] = []
        titles: set[bytes] = set()
        wanted: dict[str, str] = {}
        for place, query_id, row in self._questions():
            titles.update(_digest(title) for title, _ in _contexts(place, row))
            supporting = supporting_titles(place, row, _NO_GOLD)
            for title in supporting:
                wanted.setdefault(title, place)
            gold.append(Gold(query_id=query_id, relevance=dict.fromkeys(supporting, 1)))
        absent = [title for title in wanted if _digest(title) not in titles]
        if absent:
            raise SourceError(
                f'{wanted[absent[0]]}: the supporting fact "{absent[0]}" is in no context of the file, the first of '
                f"{len(absent)} such titles; the fullwiki release may lack them: use the distractor release"
            )
        return gold

    def _questions(self) -> Iterator[tuple[str, str, JsonObject]]:
        places: dict[str, str] = {}
        for place, row in read_json_objects(self.path):
            query_id = as_id(place, "_id", _field(place, row, "_id"))
            if query_id in places:
                raise SourceError(f'{place}: the id "{query_id}" is taken by {places[query_id]}; ids must be unique')
            places[query_id] = place
            yield place, query_id, row
        if not places:
            raise SourceError(f"{self.path}: it holds no questions; is this a release file of HotpotQA?")


def _contexts(place: str, row: JsonObject) -> Iterator[tuple[str, list[JsonValue]]]:
    contexts = _field(place, row, "context")
    for context in contexts if isinstance(contexts, list) else [contexts]:
        match context:
            case [str(title), list(sentences)] if title.strip() and all(isinstance(sentence, str) for sentence in sentences):
                yield title, sentences
            case _:
                raise SourceError(
                    f'{place}: "context" is not a list of [title, [sentences]] pairs; is this a release file of HotpotQA?'
                )


def _facts(place: str, query_id: str, row: JsonObject) -> list[JsonValue]:
    """The supporting facts of a question, each of which names a sentence of its contexts."""
    supporting_titles(place, row, _NO_GOLD)  # refuses anything but a list of facts
    counts: dict[str, int] = {}
    for title, sentences in _contexts(place, row):
        counts.setdefault(title, len(sentences))
    facts = row["supporting_facts"]
    read: dict[tuple[str, int], None] = {}
    for fact in facts if isinstance(facts, list) else []:
        match fact:
            case [str(title), int(number)] if not isinstance(number, bool) and 0 <= number < counts.get(title, 0):
                read[title, number] = None
            case [str(title), int(number)] if not isinstance(number, bool):
                held = f"has {counts[title]} sentences" if title in counts else "is in none of its contexts"
                raise SourceError(
                    f'{place}: question "{query_id}": the supporting fact names sentence {number} of "{title}", which {held} '
                    "(numbers begin at 0); correct it, leave the question out, or read the file without sentence_facts"
                )
            case _:
                wrong = fact[1] if isinstance(fact, list) and len(fact) == 2 else None
                raise SourceError(
                    f'{place}: question "{query_id}": a supporting fact is not a title and the number of a sentence '
                    f"(its number is {kind(wrong)}); read the file without sentence_facts where it has none"
                )
    return [[title, number] for title, number in read]


def _join(sentences: list[JsonValue]) -> tuple[str, list[JsonValue]]:
    """Join sentences, most of which begin with a space, and add a space where neither side has one.

    Returns:
        The content, and the start of each sentence in it.
    """
    content = ""
    begins = []
    for sentence in map(str, sentences):
        lacks_space = content and sentence and not content[-1].isspace() and not sentence[0].isspace()
        content += " " if lacks_space else ""
        begins.append(len(content))
        content += sentence
    stripped = content.strip()
    before = len(content) - len(content.lstrip())
    return stripped, [min(max(begin - before, 0), len(stripped)) for begin in begins]


def _digest(text: str) -> bytes:
    # titles are compared by their digests: 128 bits, so that two never collide; unpaired surrogates are refused later
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _field(place: str, row: JsonObject, field: str) -> JsonValue:
    return released_field(place, row, field, "HotpotQA")
