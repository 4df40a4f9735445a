"""The graph of entities, sentences and passages: which sentences name an entity, and a walk between entities and passages.

The nodes of the walk are the passages, by their rows, and after them the entities. A passage is linked to each entity that
one of its sentences names, with the weight ln(1 + N / m) where m of N passages name it: a walk that leaves a passage prefers
what few others name. Entities that nothing names any longer have no node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores, entries_of, offsets_of
from nlp_retrieval.retrievers.entity_sentences.graph.named_sentences import NamedSentences
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import Hashes, hash_of
from nlp_retrieval.retrievers.link_graph.store.link_graph import LinkGraph, WeightedGraph
from nlp_retrieval.retrievers.link_graph.store.links import Links
from nlp_retrieval.text.mentions import FUNCTION_WORDS, name_runs

_MOST_WORDS, _FEWEST_ALONE = 16, 4


@dataclass(frozen=True)
class QueryNames:
    """The known entities that a query names, each once, in order of first appearance.

    Args:
        entities: their numbers.
        texts: as they are compared.
    """

    entities: Rows
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SentenceGraph:
    """Entities by number, in the order of their hashes, with the sentences that name them; built in memory when opened.

    Args:
        sentences: ``[passages + 1]``; passage p has the sentences ``sentences[p]:sentences[p + 1]``.
        owner: ``[sentences]``, the passage of each.
        hashes: ``[entities]``, ascending.
        named_offsets: ``[sentences + 1]``; sentence s names ``named[named_offsets[s]:named_offsets[s + 1]]``.
        named: numbers of entities, ascending within a sentence.
        naming_offsets: ``[entities + 1]``; entity e is named by ``naming[naming_offsets[e]:naming_offsets[e + 1]]``.
        naming: sentences, ascending within an entity.
        n_passages_of: ``[entities]``, how many passages name each.
        walk: over passages and entities.
    """

    sentences: Rows
    owner: Rows
    hashes: Hashes
    named_offsets: Rows
    named: NDArray[np.int32]
    naming_offsets: Rows
    naming: Rows
    n_passages_of: Rows
    walk: WeightedGraph

    @classmethod
    def of(cls, sentences: NamedSentences, n_live: int) -> SentenceGraph:
        """Build from all sentences of an index.

        Args:
            sentences: those of deleted passages name nothing.
            n_live: how many passages are not deleted.
        """
        n_passages = len(sentences.sentences) - 1
        owner = np.repeat(np.arange(n_passages), np.diff(sentences.sentences))
        hashes, numbers = np.unique(sentences.hashes, return_inverse=True)
        order = np.argsort(numbers, kind="stable")
        naming = np.repeat(np.arange(len(owner)), np.diff(sentences.names))[order]
        pairs = np.unique(numbers[order] * max(n_passages, 1) + owner[naming])
        entities, passages = np.divmod(pairs, max(n_passages, 1))
        n_passages_of = np.bincount(entities, minlength=len(hashes))
        weights = np.log1p(n_live / np.maximum(n_passages_of, 1))[entities].astype(np.float32)
        by_passage = np.argsort(passages, kind="stable")
        links = Links(passages[by_passage], entities[by_passage] + n_passages, weights[by_passage])
        graph = LinkGraph.of(n_passages + len(hashes), {"names": links})
        return cls(
            sentences.sentences,
            owner,
            hashes,
            sentences.names,
            numbers.astype(np.int32),
            offsets_of(np.bincount(numbers, minlength=len(hashes))),
            naming,
            n_passages_of,
            graph.weighted({"names": (1.0, 1.0)}),
        )

    @property
    def n_passages(self) -> int:
        """How many passages there are, deleted ones included: the first entity's node."""
        return len(self.sentences) - 1

    @cached_property
    def n_entities(self) -> int:
        """How many entities there are."""
        return len(self.hashes)

    def find(self, texts: list[str]) -> Rows:
        """Return the numbers of the entities of these names, as they are compared; -1 where there is none."""
        wanted = np.array([hash_of(text) for text in texts], np.uint64)
        places = np.searchsorted(self.hashes, wanted)
        found = np.zeros(len(wanted), bool)
        inside = places < len(self.hashes)
        found[inside] = self.hashes[places[inside]] == wanted[inside]
        return np.where(found, places, -1)

    def named_by(self, query: str) -> QueryNames:
        """Find the entities that a query names: in its runs of capitalised words the longest known names, left to right.

        In a query without any upper-case letter all words count, but a single word only if it has four characters and is no
        function word.
        """
        has_case = any(map(str.isupper, query))
        found: dict[int, str] = {}
        for words in name_runs(query):
            windows = [(n, m) for n in range(len(words)) for m in range(min(len(words), n + _MOST_WORDS), n, -1)]
            texts = [" ".join(words[n:m]) for n, m in windows]
            free = 0
            for (first, last), text, number in zip(windows, texts, self.find(texts).tolist(), strict=True):
                if number < 0 or first < free or (last - first == 1 and not _may_stand_alone(text, has_case=has_case)):
                    continue
                found.setdefault(number, text)
                free = last
        return QueryNames(np.array(list(found), np.int64), tuple(found.values()))

    def best_sentences(self, passages: Rows, similarities: Scores) -> Scores:
        """Return the highest similarity of each passage's sentences.

        Args:
            passages: rows.
            similarities: of all their sentences, one passage after another, as :meth:`sentences_of` returns them.
        """
        counts = self.sentences[passages + 1] - self.sentences[passages]
        return np.maximum.reduceat(similarities, offsets_of(counts)[:-1]) if len(passages) else np.zeros(0)

    def sentences_of(self, passages: Rows) -> Rows:
        """Return the sentences of some passages, one passage after another."""
        sentences, _ = entries_of(self.sentences, passages)
        return sentences


def _may_stand_alone(word: str, *, has_case: bool) -> bool:
    return word not in FUNCTION_WORDS and (has_case or len(word) >= _FEWEST_ALONE)
