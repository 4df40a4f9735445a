"""The relations that led to the passages of an answer, drawn: passages on a ring by rank, an arrow for every relation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from nlp_retrieval.systems.policy.schema import AnswerChunk
from nlp_retrieval.text import visible

__all__ = ["RELATION_CLASSES", "relation_graph"]

RELATION_CLASSES = {
    "SUPPORTS": "series-2",
    "EXPLAINS": "series-0",
    "CONTRADICTS": "series-1",
    "FOLLOWS": "series-6",
    "TEMPORAL_FOLLOWS": "series-3",
    "CAUSES": "series-4",
}
"""The colour of each type of relation; others have the last."""

_OTHER = "series-7"
_WIDTH, _HEIGHT = 420, 260
_RING, _NODE = 96.0, 11.0
_MOST = 24


def relation_graph(chunks: Sequence[AnswerChunk]) -> Markup:
    """Return a drawing of the chains of relations that led to passages; empty where no passage has one.

    Passages of the list have their rank; those that were only passed through are small and have none.

    Args:
        chunks: of one answer, best first.
    """
    edges: dict[tuple[str, str, str], None] = {}
    for chunk in chunks:
        for step in chunk.chain.steps if chunk.chain is not None else ():
            edges[step.source, step.target, step.kind] = None
    if not edges:
        return Markup()
    ranks = {chunk.id: rank for rank, chunk in enumerate(chunks, start=1)}
    met = dict.fromkeys(name for source, target, _ in edges for name in (source, target))
    nodes = sorted(met, key=lambda name: (ranks.get(name, len(ranks) + 1), name))[:_MOST]
    places = {name: _place(number, len(nodes)) for number, name in enumerate(nodes)}
    drawn = [(edge, places[edge[0]], places[edge[1]]) for edge in edges if edge[0] in places and edge[1] in places]
    kinds = sorted({edge[2] for edge, _, _ in drawn})
    parts = [_arrow(kind, begin, end) for (_, _, kind), begin, end in drawn]
    parts += [_node(name, ranks.get(name), place) for name, place in places.items()]
    parts += [_legend(number, kind) for number, kind in enumerate(kinds)]
    label = f"{len(drawn)} relations between {len(nodes)} passages"
    height = _HEIGHT + 16 * len(kinds)
    return Markup('<svg class="relations" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, height, label, Markup("").join(parts)
    )


def _place(number: int, total: int) -> tuple[float, float]:
    angle = 2 * math.pi * number / total - math.pi / 2
    return _WIDTH / 2 + 1.6 * _RING * math.cos(angle), _HEIGHT / 2 + _RING * math.sin(angle)


def _arrow(kind: str, begin: tuple[float, float], end: tuple[float, float]) -> Markup:
    """A line from ring to ring with a head, in the colour of its kind."""
    across, down = end[0] - begin[0], end[1] - begin[1]
    length = math.hypot(across, down)
    if length < 2 * _NODE:
        return Markup()
    unit = across / length, down / length
    start = begin[0] + unit[0] * _NODE, begin[1] + unit[1] * _NODE
    tip = end[0] - unit[0] * (_NODE + 1), end[1] - unit[1] * (_NODE + 1)
    left = tip[0] - 8 * unit[0] - 4 * unit[1], tip[1] - 8 * unit[1] + 4 * unit[0]
    right = tip[0] - 8 * unit[0] + 4 * unit[1], tip[1] - 8 * unit[1] - 4 * unit[0]
    path = f"M{_at(start)}L{_at(tip)}M{_at(left)}L{_at(tip)}L{_at(right)}"
    return Markup('<path class="{}" d="{}" fill="none" stroke="currentColor"><title>{}</title></path>').format(
        _class(kind), path, _said(kind)
    )


def _node(name: str, rank: int | None, place: tuple[float, float]) -> Markup:
    if rank is None:
        return Markup('<circle class="passed" cx="{:.1f}" cy="{:.1f}" r="6"><title>{}</title></circle>').format(
            *place, visible(name)
        )
    return Markup(
        '<g class="found"><title>{}</title><circle cx="{:.1f}" cy="{:.1f}" r="{}"/>'
        '<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text></g>'
    ).format(visible(name), *place, _NODE, place[0], place[1] + 4, rank)


def _legend(number: int, kind: str) -> Markup:
    y = _HEIGHT + 16 * number + 4
    return Markup(
        '<path class="{}" d="M10,{}h22" fill="none" stroke="currentColor"/><text class="label" x="38" y="{}">{}</text>'
    ).format(_class(kind), y, y + 4, _said(kind))


def _class(kind: str) -> str:
    return RELATION_CLASSES.get(kind.upper(), _OTHER)


def _said(kind: str) -> str:
    return visible(kind.replace("_", " ").lower())


def _at(place: tuple[float, float]) -> str:
    return f"{place[0]:.1f},{place[1]:.1f}"
