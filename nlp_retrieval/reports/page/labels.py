"""Short, distinct labels of configurations.

Parts that a long name shares with the others are replaced by middle dots, so that its distinguishing parts remain readable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from nlp_retrieval.text.printing import printable

DOTS = "\N{MIDDLE DOT}" * 3
LONGEST = 24
"""Maximum characters."""

_PARTS = re.compile(r"\w+|\W+")


def labels_of_names(names: Sequence[str]) -> list[str]:
    """Return a label for each name, of at most 24 characters, or slightly more if only numbers distinguish labels.

    Args:
        names: distinct names of configurations.
    """
    names = list(map(printable, names))
    parts = [_PARTS.findall(name) for name in names]
    shared = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    labels = [name if len(name) <= LONGEST else _without(own, shared) for name, own in zip(names, parts, strict=True)]
    for label, count in Counter(labels).items():
        if count > 1:
            alike = [place for place, own in enumerate(labels) if own == label]
            for place, text in zip(alike, _told_apart([names[place] for place in alike]), strict=True):
                labels[place] = text
    taken = Counter(labels)
    return [label if taken[label] == 1 else f"{label} {place + 1}" for place, label in enumerate(labels)]


def _without(parts: Sequence[str], shared: set[str]) -> str:
    """The name with runs of shared parts removed, longest first, until it is short enough; otherwise cut in its middle."""
    parts = list(parts)
    while sum(map(len, parts)) > LONGEST:
        runs = [run for run in _runs(parts, shared) if sum(map(len, parts[slice(*run)])) > len(DOTS)]
        if not runs:
            break
        begin, end = max(runs, key=lambda run: sum(map(len, parts[slice(*run)])))
        parts[begin:end] = [DOTS]
    return _cut("".join(parts))


def _runs(parts: Sequence[str], shared: set[str]) -> list[tuple[int, int]]:
    """Return the start and end of runs of shared parts."""
    edges = [
        place for place in range(len(parts) + 1) if _is_shared(parts, place, shared) != _is_shared(parts, place - 1, shared)
    ]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _is_shared(parts: Sequence[str], place: int, shared: set[str]) -> bool:
    return 0 <= place < len(parts) and parts[place] in shared


def _cut(text: str) -> str:
    half = (LONGEST - len(DOTS)) // 2
    return text if len(text) <= LONGEST else f"{text[: LONGEST - len(DOTS) - half]}{DOTS}{text[-half:]}"


def _told_apart(names: Sequence[str]) -> list[str]:
    """Return each name without the beginning and the end that all of them share."""
    begin = _shared_start(names)
    rests = [name[begin:] for name in names]
    end = _shared_start([rest[::-1] for rest in rests])
    room = LONGEST - 2 * len(DOTS)
    labels = []
    for name, rest in zip(names, rests, strict=True):
        differing = rest[: len(rest) - end] if end else rest
        differing = differing if len(differing) <= room else f"{differing[: room - len(DOTS)]}{DOTS}"
        lead = max(0, room - len(differing))
        labels.append(f"{name[:lead]}{DOTS}{differing}" if begin > lead else f"{name[:begin]}{differing}")
    return labels


def _shared_start(texts: Sequence[str]) -> int:
    """Return the length of the texts' common prefix."""
    differing = (place for place, characters in enumerate(zip(*texts, strict=False)) if len(set(characters)) > 1)
    return next(differing, min(map(len, texts)))
