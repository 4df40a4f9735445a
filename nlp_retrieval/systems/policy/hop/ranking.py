"""Result lists of a hop search, and questions about changes between versions of a text.

A short list of English cues decides the kind of change: something new, or something gone, with a version ("since the previous
edition", "in the later assessment", "than in the last plan") or without ("what is new about", "no longer stands"). A question
without a cue asks for no change. In other languages the kind must be given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nlp_retrieval.core import Mask, Rows, Scores
from nlp_retrieval.systems.policy.hop.graph import RelationPath
from nlp_retrieval.systems.policy.hop.versions import EDITED

ChangeKind = Literal["added", "dropped"]

_LONGEST = 10_000
_WHICH = (
    r"(?:previous|earlier|prior|preceding|last|former|old(?:er)?|first|later|latest|newer|newest|new|current|next|second|updated|"
    r"revised|recent|most recent)"
)
_WHAT = (
    r"(?:edition|version|assessment|plan|ndc|submission|report|document|pledge|contribution|policy|strategy|release|draft|"
    r"communication|guideline|law|act|one)s?"
)
_VERSION = re.compile(
    rf"\b(?:(?:since|in|from|of|to|with|than|as|against)\s)?(?:the|its|their|this|that)?\s?{_WHICH}\s(?:\w{{1,30}}\s)?{_WHAT}\b"
    r"|\bsince (?:then|last time|\d{4})\b",
    re.IGNORECASE,
)
_ADDED = re.compile(
    r"\b(?:(?:was|were|is|are|has been|have been|been|being)\s)?(?:newly\s)?(?:added|new|introduced|rewritten|reworded|revised|"
    r"updated|amended|changed|changes|strengthened|differs?|different|inserted)\b(?:\s(?:or|and)\s(?:added|new|rewritten|reworded|"
    r"revised|updated|changed)\b)?",
    re.IGNORECASE,
)
_DROPPED = re.compile(
    r"\b(?:(?:was|were|is|are|has been|have been|been|being)\s)?(?:removed|dropped|deleted|abandoned|withdrawn|omitted|missing|"
    r"disappeared|discarded|left out|taken out|gone)\b",
    re.IGNORECASE,
)
_NEW_ABOUT = re.compile(r"\bwhat(?:\s(?:is|was)|['\u2019]s)\s(?:new|added)\s(?:about|in|on|for|regarding)\b", re.IGNORECASE)
_NO_LONGER = re.compile(
    r"\b(?:that|which)?\s?\bno longer\s(?:stands?|holds?|appl(?:y|ies)|appears?|there|said|valid|mentioned|included|present|"
    r"true|found|listed|stated)\b",
    re.IGNORECASE,
)
_FRAME = re.compile(
    r"\A\s*(?:what|which|list|show)\b[^.?!]{0,40}?\b(?:about|on|regarding|concerning)\b|\b(?:about|on|regarding)\s*\Z|[?!.]+\s*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ChangeQuestion:
    """A question about changes.

    Args:
        kind: of the change.
        rest: the question without the cue; the whole question if nothing else is left.
    """

    kind: ChangeKind
    rest: str


def change_asked(question: str, kind: Literal["auto", "added", "dropped", "none"] = "auto") -> ChangeQuestion | None:
    """Return the change that a question asks for; None if it asks for none.

    Args:
        question: any text.
        kind: ``auto`` decides by the cues; any other is used as given, and cues are only removed from the question.
    """
    text = question[:_LONGEST]
    if kind == "none":
        return None
    kind_asked = _kind_of(text) if kind == "auto" else kind
    if kind_asked is None:
        return None
    rest = text
    for pattern in (_NEW_ABOUT, _NO_LONGER):
        rest = pattern.sub(" ", rest)
    if _VERSION.search(rest):
        rest = (_DROPPED if kind_asked == "dropped" else _ADDED).sub(" ", _VERSION.sub(" ", rest))
    rest = " ".join(_FRAME.sub(" ", _FRAME.sub(" ", rest)).split())
    return ChangeQuestion(kind_asked, rest if re.search(r"\w", rest) else question)


def _kind_of(text: str) -> ChangeKind | None:
    if _NO_LONGER.search(text):
        return "dropped"
    version = _VERSION.search(text)
    if version is not None:
        remaining = text[: version.start()] + " " + text[version.end() :]  # "the new plan" is a version, not a change
        if _DROPPED.search(remaining):
            return "dropped"
        if _ADDED.search(remaining):
            return "added"
    return "added" if _NEW_ABOUT.search(text) else None


@dataclass(frozen=True, eq=False)
class RankedPassages:
    """A list, best first."""

    rows: Rows
    scores: Scores
    signals: dict[str, Scores]

    def then(self, others: RankedPassages, k: int) -> RankedPassages:
        """Return these, followed by the missing ones of another list with the same distances; at most k."""
        kept = np.flatnonzero(~np.isin(others.rows, self.rows))[: max(0, k - len(self.rows))]
        signals = {
            key: np.concatenate([
                self.signals.get(key, np.full(len(self.rows), np.nan)),
                others.signals.get(key, np.full(len(others.rows), np.nan))[kept],
            ])
            for key in dict.fromkeys([*self.signals, *others.signals])
        }  # fmt: skip
        following = others.scores[kept]
        if len(self.rows) and len(following):
            following = float(self.scores.min()) - 1.0 - (float(others.scores.max()) - following)
        scores = np.concatenate([self.scores, following])
        whole = RankedPassages(np.concatenate([self.rows, others.rows[kept]]), scores, signals)
        return whole.head(k)

    def head(self, k: int) -> RankedPassages:
        """Return the best k."""
        return RankedPassages(self.rows[:k], self.scores[:k], {key: column[:k] for key, column in self.signals.items()})


def pooled(rows: Rows, own: Scores, paths: list[RelationPath], hop_weight: float, central: Scores, k: int) -> RankedPassages:
    """Rank found passages, and those reached from them."""
    reached = np.array([path.row for path in paths], np.int64)
    every = np.union1d(rows, reached)
    scores_found, walked, hops = np.zeros(len(every)), np.zeros(len(every)), np.full(len(every), np.nan)
    scores_found[np.searchsorted(every, rows)] = own
    places = np.searchsorted(every, reached)
    walked[places] = [path.strength for path in paths]
    hops[places] = [len(path.relations) for path in paths]
    scores = (scores_found + hop_weight * walked + central[every]).round(9)
    order = np.lexsort((every, -scores))[:k]
    return RankedPassages(every[order], scores[order], {"path": walked[order], "hops": hops[order]})


@dataclass(frozen=True, eq=False)
class VersionChanges:
    """Changes between versions, by row of an index.

    Args:
        versions: number of the version of each passage in its family; -1 for none.
        families: number of its family.
        new: share of its words that the version before does not have; NaN if there is none.
        gone: share of its words that the next version does not have; NaN if there is none.
        following: rows with a row before them in their document.
        followed: for each, the row before it.
    """

    versions: Rows
    families: Rows
    new: Scores
    gone: Scores
    following: Rows
    followed: Rows

    def side(self, kind: str, allowed: Mask | None) -> tuple[Mask, Mask]:
        """Return the passages of the requested version, and those of them that changed.

        This is the last version of each family with a version before it (or, for dropped passages, after it), of the allowed
        ones.

        Args:
            kind: ``added`` or ``dropped``.
            allowed: ``[rows]``, whether a row may be found.
        """
        shares = self.new if kind == "added" else self.gone
        comparable = ~np.isnan(shares)
        if allowed is not None:
            comparable = comparable & allowed
        rows = np.flatnonzero(comparable)
        last = np.full(int(self.families.max(initial=0)) + 1, -1)
        np.maximum.at(last, self.families[rows], self.versions[rows])
        comparable = comparable & (self.versions == last[self.families])
        return comparable, comparable & (np.nan_to_num(shares) >= EDITED)

    def smoothed(self, rows: Rows, scores: Scores, weight: float) -> Scores:
        """Return scores that include those of the passages before and after: a topic often takes several passages.

        Args:
            rows: the passages that have a score.
            scores: 0 to 1.
            weight: of a neighbour, compared with 1 for the passage itself.
        """
        by_row = np.full(len(self.versions), np.nan)
        by_row[rows] = scores
        sums, counts = np.nan_to_num(by_row), np.ones(len(by_row))
        for ahead, behind in ((self.following, self.followed), (self.followed, self.following)):
            known = ~np.isnan(by_row[behind])
            np.add.at(sums, ahead[known], weight * by_row[behind[known]])
            np.add.at(counts, ahead[known], weight)
        means: Scores = sums / counts
        return means[rows]


Search = Callable[[str, int, Mask], tuple[Rows, Scores]]
"""Finds at most so many allowed rows for a query: rows, best first, and their scores."""


def changed(
    changes: VersionChanges,
    kind: str,
    query: str,
    search: Search,
    allowed: Mask | None,
    depth: int,
    weight: float,
    power: float,
) -> RankedPassages:
    """Rank passages changed by a version, by relevance to a query and by the share that is new, or gone.

    Args:
        changes: between versions.
        kind: ``added`` or ``dropped``.
        query: the subject of the question.
        search: finds passages.
        allowed: ``[rows]``, whether a row may be found.
        depth: number of changed passages, and of others, to search for.
        weight: of the passages before and after.
        power: exponent of the share that is new.
    """
    side, is_changed = changes.side(kind, allowed)
    rows, scores = search(query, depth, is_changed)
    if not len(rows):
        return RankedPassages(rows, scores, {})
    others, other_scores = search(query, depth, side & ~is_changed)
    all_scores = np.concatenate([scores, other_scores])
    lowest = float(all_scores.min())
    span = float(all_scores.max()) - lowest
    relevance = (all_scores - lowest) / span if span > 0 else np.ones(len(all_scores))
    smooth = changes.smoothed(np.concatenate([rows, others]), relevance, weight)[: len(rows)]
    shares = (changes.new if kind == "added" else changes.gone)[rows]
    final = ((0.01 + smooth) * shares**power).round(9)
    order = np.lexsort((rows, -final))
    return RankedPassages(rows[order], final[order], {"relevance": smooth[order]})
