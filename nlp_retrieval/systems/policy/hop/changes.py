"""Questions about changes between versions of a text: their kind, and their subject.

A short list of English cues decides the kind of change: something new, or something gone, with a version ("since the previous
edition", "in the later assessment", "than in the last plan") or without ("what is new about", "no longer stands"). A question
without a cue asks for no change. In other languages the kind must be given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["ChangeKind", "ChangeQuestion", "change_asked"]

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
    found = _kind_of(text) if kind == "auto" else kind
    if found is None:
        return None
    rest = text
    for pattern in (_NEW_ABOUT, _NO_LONGER):
        rest = pattern.sub(" ", rest)
    if _VERSION.search(rest):
        rest = (_DROPPED if found == "dropped" else _ADDED).sub(" ", _VERSION.sub(" ", rest))
    rest = " ".join(_FRAME.sub(" ", _FRAME.sub(" ", rest)).split())
    return ChangeQuestion(found, rest if re.search(r"\w", rest) else question)


def _kind_of(text: str) -> ChangeKind | None:
    if _NO_LONGER.search(text):
        return "dropped"
    version = _VERSION.search(text)
    if version is not None:
        apart = text[: version.start()] + " " + text[version.end() :]  # "the new plan" is a version, not a change
        if _DROPPED.search(apart):
            return "dropped"
        if _ADDED.search(apart):
            return "added"
    return "added" if _NEW_ABOUT.search(text) else None
