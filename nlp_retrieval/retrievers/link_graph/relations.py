"""Evidence that a link answers the relation that a query asks for: "directed by [Ada Mill]" answers "director"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.queries import STOP_WORDS
from nlp_retrieval.retrievers.link_graph.tables import ASKED, stem_of
from nlp_retrieval.text.surfaces import Surface, spans_of, words_of

_BEFORE, _AFTER = 9, 3
"""How many words before and after a mention may say the relation; those after it count at most half."""

_CHILD, _MARRIED = "son daughter child born", "married wife husband spouse widow"
_SAID = {
    **dict.fromkeys(["parent", "mother", "father"], f"{_CHILD} mother father"),
    **dict.fromkeys(["grandfather", "grandmother", "grandparent"], f"{_CHILD} grandson granddaughter grandchild"),
    **dict.fromkeys(["child", "son", "daughter"], "father mother parent son daughter"),
    **dict.fromkeys(["husband", "wife", "spouse"], _MARRIED),
    **dict.fromkeys(["sibling", "brother", "sister"], "sibling brother sister"),
    **dict.fromkeys(["author", "writer", "screenwriter"], "written wrote author writer novelist screenplay"),
    **dict.fromkeys(["performer", "singer"], "song single album sung recorded performed singer band"),
    **dict.fromkeys(["founder", "creator"], "founded established created developed"),
    "director": "directed filmmaker",
    "composer": "composed music score",
    "producer": "produced",
    "star": "starring starred",
    "owner": "owned",
}
"""How sentences say what a query asks for; any word also answers to its own stem."""


@cache
def _answers() -> dict[str, frozenset[str]]:
    return {stem_of(asked): frozenset(map(stem_of, [asked, *said.split()])) for asked, said in _SAID.items()}


def asked_relations(query: str, named: Sequence[tuple[int, int]]) -> frozenset[str]:
    """Return the stems by which a sentence may say what a query asks for."""
    stems: set[str] = set()
    for (start, _), word in zip(spans_of(query), words_of(query), strict=True):
        asks = len(word) > 2 and word not in STOP_WORDS and word not in ASKED
        if asks and not any(begin <= start < end for begin, end in named):
            stems |= _answers().get(stem_of(word), {stem_of(word)})
    return frozenset(stems)


def relation_evidence(
    asked: frozenset[str],
    sources: Mapping[int, SearchableItem],
    targets: Iterable[tuple[int, int, Sequence[Surface]]],
    count: int,
) -> Scores:
    """Return for each candidate how close the asked relation stands to a mention of it in a source: 0 to 1."""
    evidence = np.zeros(count)
    read = {place: _Read(item, asked) for place, item in sources.items()} if asked else {}
    for source, target, surfaces in targets if asked else ():
        closest = max((read[source].closeness(surface.words) for surface in surfaces), default=0.0)
        evidence[target] = max(evidence[target], closest)
    return evidence


class _Read:
    """The words of a passage, its sentences, and the words that say what is asked for, without those of its title."""

    def __init__(self, item: SearchableItem, asked: frozenset[str]) -> None:
        text, spans = item.content, spans_of(item.content)
        self.words = words_of(text)
        own = set(map(stem_of, words_of(item.title)))
        wanted = {word for word in set(self.words) if (stem := stem_of(word)) in asked and stem not in own}
        self.says = [word in wanted for word in self.words]
        ends = [text[end : end + 2] in {". ", "? ", "! ", ".\n"} or text[end : end + 1] == "\n" for _, end in spans]
        self.sentences = np.cumsum([False, *ends[:-1]]).tolist()
        self.places: dict[str, list[int]] = {}
        for place, word in enumerate(self.words):
            self.places.setdefault(word, []).append(place)

    def closeness(self, name: tuple[str, ...]) -> float:
        """The closeness of the nearest word that says it to a mention of a name; 0 if there is none."""
        closest = 0.0
        for first in self.places.get(name[0], []) if any(self.says) else []:
            last = first + len(name)
            if self.words[first:last] == name:
                before = ((first - step, 1 - (step - 1) / (_BEFORE + 1)) for step in range(1, _BEFORE + 1))
                after = ((last + step, 0.5 - step / 10) for step in range(_AFTER))
                closest = max([closest, *(value for place, value in (*before, *after) if self._says(place, first))])
        return closest

    def _says(self, place: int, mention: int) -> bool:
        return 0 <= place < len(self.words) and self.says[place] and self.sentences[place] == self.sentences[mention]
