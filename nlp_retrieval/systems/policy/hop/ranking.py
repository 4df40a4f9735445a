"""Result lists of a hop search, and questions about changes between editions of a plan.

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
from nlp_retrieval.systems.policy.hop.relation import FOLLOWS, RelationTables

ChangeKind = Literal["added", "dropped"]

EDITED = 0.05
"""Least share of new words of an edited passage; another figure is an edit too."""

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
    """A question about changes."""

    kind: ChangeKind
    rest: str


def change_asked(question: str, kind: Literal["auto", "added", "dropped", "none"] = "auto") -> ChangeQuestion | None:
    """Return the change that a question asks for; None if it asks for none."""
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
        following = others.scores[kept]
        if len(self.rows) and len(following):
            following = float(self.scores.min()) - 1.0 - (float(others.scores.max()) - following)
        whole = RankedPassages(np.concatenate([self.rows, others.rows[kept]]), np.concatenate([self.scores, following]), {})
        for key in dict.fromkeys([*self.signals, *others.signals]):
            first = self.signals.get(key, np.full(len(self.rows), np.nan))
            second = others.signals.get(key, np.full(len(others.rows), np.nan))[kept]
            whole.signals[key] = np.concatenate([first, second])
        return whole.head(k)

    def head(self, k: int) -> RankedPassages:
        """Return the best k."""
        return RankedPassages(self.rows[:k], self.scores[:k], {key: column[:k] for key, column in self.signals.items()})


def pooled(rows: Rows, own: Scores, paths: list[RelationPath], hop_weight: float, k: int) -> RankedPassages:
    """Rank found passages, and those reached from them."""
    reached = np.array([path.row for path in paths], np.int64)
    every = np.union1d(rows, reached)
    searched, walked, hops = np.zeros(len(every)), np.zeros(len(every)), np.full(len(every), np.nan)
    searched[np.searchsorted(every, rows)] = own
    places = np.searchsorted(every, reached)
    walked[places] = [path.strength for path in paths]
    hops[places] = [len(path.relations) for path in paths]
    scores = (searched + hop_weight * walked).round(9)
    order = np.lexsort((every, -scores))[:k]
    return RankedPassages(every[order], scores[order], {"path": walked[order], "hops": hops[order]})


Search = Callable[[str, int, Mask], tuple[Rows, Scores]]
"""Finds at most so many allowed rows for a query: rows, best first, and their scores."""


def changed(tables: RelationTables, asked: ChangeQuestion, search: Search, allowed: Mask | None, depth: int) -> RankedPassages:
    """Rank passages that an edition changed, by relevance to a question and by the share that is new, or gone."""
    side, is_changed = changed_side(tables, asked.kind, allowed)
    rows, scores = search(asked.rest, depth, is_changed)
    if not len(rows):
        return RankedPassages(rows, scores, {})
    others, other_scores = search(asked.rest, depth, side & ~is_changed)
    all_scores = np.concatenate([scores, other_scores])
    lowest = float(all_scores.min())
    span = float(all_scores.max()) - lowest
    relevance = (all_scores - lowest) / span if span > 0 else np.ones(len(all_scores))
    smooth = _smoothed(tables, np.concatenate([rows, others]), relevance)[: len(rows)]
    final = ((0.01 + smooth) * _shares(tables, asked.kind)[rows] ** _NEWNESS_POWER).round(9)
    order = np.lexsort((rows, -final))
    return RankedPassages(rows[order], final[order], {"relevance": smooth[order]})


_NEWNESS_POWER, _BESIDE = 0.1, 0.5
"""Exponent of the share that is new, and weight of the passages before and after one, compared with 1."""


def _shares(tables: RelationTables, kind: ChangeKind) -> Scores:
    return tables.new if kind == "added" else tables.gone


def changed_side(tables: RelationTables, kind: ChangeKind, allowed: Mask | None) -> tuple[Mask, Mask]:
    """Return the passages of the edition that is asked for, and those of them that changed."""
    comparable = ~np.isnan(_shares(tables, kind))
    if allowed is not None:
        comparable = comparable & allowed
    _, families = np.unique(tables.families, return_inverse=True)
    last = np.full(int(families.max(initial=0)) + 1, -1)
    np.maximum.at(last, families[comparable], tables.versions[comparable])
    comparable = comparable & (tables.versions == last[families])
    return comparable, comparable & (np.nan_to_num(_shares(tables, kind)) >= EDITED)


def _smoothed(tables: RelationTables, rows: Rows, scores: Scores) -> Scores:
    """Return scores that include those of the passages before and after: a topic often takes several passages."""
    by_row = np.full(len(tables.versions), np.nan)
    by_row[rows] = scores
    sums, counts = np.nan_to_num(by_row), np.ones(len(by_row))
    is_next = tables.relations.types == FOLLOWS
    following, followed = tables.relations.sources[is_next], tables.relations.targets[is_next]
    for ahead, behind in ((following, followed), (followed, following)):
        known = ~np.isnan(by_row[behind])
        np.add.at(sums, ahead[known], _BESIDE * by_row[behind[known]])
        np.add.at(counts, ahead[known], _BESIDE)
    means: Scores = sums / counts
    return means[rows]
