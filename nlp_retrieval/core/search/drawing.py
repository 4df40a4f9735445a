"""A drawing of a searcher as SVG: its stages from left to right, the depth of each list on its arrow.

A searcher inside another is a box around its own stages. A box shows the settings that are not the default; its tooltip has all
of them. The drawing has no scripts and no colours of its own, so it is readable on any background.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nlp_retrieval.core.components.component import Config, parameters_of, to_plain
from nlp_retrieval.core.components.registry import component_class, numbered_names
from nlp_retrieval.core.queries import POOL_DEPTH
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.core.tables import html_text
from nlp_retrieval.errors import InputError

NAMESPACE = "http://www.w3.org/2000/svg"
_FONT, _NOTE, _CHAR = 13, 11, 0.6
"""Sizes of texts in pixels, and the width of a character as a share of them."""
_SMALL = f' font-size="{_NOTE}" opacity=".75"'
_PAD, _LINE, _GAP = 10, 15, 26
_LONGEST, _MOST_NOTES = 34, 3


@dataclass(frozen=True)
class _Shape:
    """Something to draw: ``draw(x, y)`` returns its elements, with its left edge at x and its middle at y."""

    width: float
    height: float
    draw: Callable[[float, float], list[str]]


_Step = tuple[str, _Shape]
"""A shape, and the text on the arrow that leads to it."""


def drawing(config: Config, kind: str = "searchers", first: int | None = None) -> str:
    """Return the text of an SVG file; ``first`` is how many candidates a reranker reorders."""
    steps = _stages(config) if _is_composed(config) else [(f"first {first}" if first else "", _box(config, kind))]
    depth = config.get("depth") if _is_composed(config) and len(steps) == 1 else None
    ends = f"k, at most {depth}" if isinstance(depth, int) else "k"
    begin = _text("candidates" if kind == "rerankers" else "query")
    shape = _row(begin, [*steps, (ends, _text("hits"))])
    width, height = f"{shape.width + 8:.0f}", f"{shape.height + 8:.0f}"
    head = (
        f'<svg xmlns="{NAMESPACE}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="{_FONT}" fill="currentColor">'
    )
    return "".join([head, *shape.draw(4, shape.height / 2 + 4), "</svg>"])


# What is drawn.


def _stages(config: Config) -> list[_Step]:
    retrievers, reranker = config["retrievers"], config.get("reranker") or []
    labels = retrievers if isinstance(retrievers, Mapping) else _numbered(retrievers)
    rerankers = _numbered(reranker if isinstance(reranker, list) else [reranker])
    is_apart, depth = config.get("scope") == "per_subquery", config.get("depth")
    fusion = config.get("fusion") or {"name": "raw"}
    depths = depth if isinstance(depth, Mapping) else dict.fromkeys(labels, depth)
    usual = "k" if len(labels) == 1 and not rerankers and not is_apart else POOL_DEPTH
    shown = {label: str(depths.get(label) or usual) for label in labels}
    shapes = {
        label: _framed(label, _row(None, _stages(part))) if _is_composed(part) else _box(part, "retrievers", label)
        for label, part in labels.items()
    }
    steps = [("", _box(config["processor"], "processors"))] if config.get("processor") else []
    arrow, found = "sub-queries" if steps else "", ""
    if len(labels) == 1 and fusion["name"] == "raw":
        ((label, shape),) = shapes.items()
        steps.append((arrow, shape))
        found = shown[label]
    else:
        weights = fusion.get("weights")
        if isinstance(weights, Mapping | list):
            values = weights.values() if isinstance(weights, Mapping) else weights
            shown = {label: f"{value:g} · {shown[label]}" for label, value in zip(labels, values, strict=False)}
        steps.append((arrow, _branches([(shown[label], shape) for label, shape in shapes.items()], _box(fusion, "fusions"))))
    for number, (label, part) in enumerate(rerankers.items()):
        first = f"first {depths[label]}" if depths.get(label) and (number or str(depths[label]) != found) else ""
        steps.append((", ".join(filter(None, ("" if number else found, first))), _box(part, "rerankers")))
    if is_apart:
        quota = [f"quota={config['quota']}"] if config.get("quota") else []
        steps.append(("", _labelled("interleave", quota, "the lists of the sub-queries, by rank")))
    return steps


def _is_composed(config: Config) -> bool:
    return config.get("name") == "searcher" and bool(config.get("retrievers"))


def _numbered(parts: Sequence[Config]) -> dict[str, Config]:
    return dict(zip(numbered_names(part["name"] for part in parts), parts, strict=True))


def _box(config: Config, kind: str, label: str = "") -> _Shape:
    """A component, with its settings that are not the default."""
    name = str(config["name"])
    shown = without_secrets({key: value for key, value in config.items() if key != "name"})
    try:
        defaults = {key: to_plain(parameter.default) for key, parameter in parameters_of(component_class(kind, name)).items()}
    except (InputError, ImportError):  # a component that is not installed here
        defaults = shown
    changed = {key: value for key, value in shown.items() if key != "weights" and not _is_default(value, defaults.get(key))}
    notes = ([name] if label and label != name else []) + [f"{key}={_brief(value)}" for key, value in changed.items()]
    tooltip = f"{name}: " + ", ".join(f"{key}={_brief(value)}" for key, value in shown.items())
    return _labelled(label or name, notes, tooltip)


def _is_default(value: Any, default: Any) -> bool:
    is_named = isinstance(value, Mapping) and value.get("name") == default and "model" not in value
    return value == default or is_named


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        model = value.get("model")
        return model.rstrip("/").rsplit("/", 1)[-1] if isinstance(model, str) else str(value.get("name"))
    if isinstance(value, list):
        return "+".join(map(_brief, value))
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


# How it is drawn.


def _labelled(title: str, notes: Sequence[str], tooltip: str) -> _Shape:
    """A box with a title, and notes below it."""
    left_out = [f"and {len(notes) - _MOST_NOTES + 1} more"] if len(notes) > _MOST_NOTES else []
    lines = [*notes[: _MOST_NOTES - len(left_out)], *left_out]
    width = 2 * _PAD + max(_width(title, _FONT), *(_width(line, _NOTE) for line in lines), 0)
    height = 2 * _PAD - 4 + _LINE * (1 + len(lines))

    def draw(x: float, y: float) -> list[str]:
        top, middle = y - height / 2, x + width / 2
        texts = [_words_at(middle, top + _PAD + 9, title, ' font-weight="bold"')]
        texts += [_words_at(middle, top + _PAD + 9 + _LINE * number, line, _SMALL) for number, line in enumerate(lines, 1)]
        return ["<g>", f"<title>{html_text(tooltip)}</title>", _rectangle(x, top, width, height, ".06"), *texts, "</g>"]

    return _Shape(width, height, draw)


def _text(words: str) -> _Shape:
    width = _width(words, _FONT)
    return _Shape(width, _LINE, lambda x, y: [_words_at(x + width / 2, y + 4, words)])


def _framed(title: str, inner: _Shape) -> _Shape:
    """A searcher inside another one."""
    width, height = max(inner.width, _width(title, _NOTE)) + 2 * _PAD, inner.height + 2 * _PAD + _LINE

    def draw(x: float, y: float) -> list[str]:
        name = _words_at(x + width / 2, y - height / 2 + _LINE, title, _SMALL)
        frame = _rectangle(x, y - height / 2, width, height, ".03", ' stroke-dasharray="4 3"')
        return [frame, name, *inner.draw(x + _PAD, y + _LINE / 2)]

    return _Shape(width, height, draw)


def _row(begin: _Shape | None, steps: Sequence[_Step]) -> _Shape:
    """Shapes from left to right, with an arrow to each; without a beginning, the first has none."""
    shapes = [*([begin] if begin else []), *(shape for _, shape in steps)]
    arrows = [text for text, _ in steps][len(steps) - len(shapes) + 1 :]
    gaps = [_GAP + _width(text, _NOTE) for text in arrows]

    def draw(x: float, y: float) -> list[str]:
        parts = shapes[0].draw(x, y)
        x += shapes[0].width
        for shape, text, gap in zip(shapes[1:], arrows, gaps, strict=True):
            parts += [_arrow(x, y, x + gap, y), _words_at(x + gap / 2 - 3, y - 6, text, _SMALL), *shape.draw(x + gap, y)]
            x += gap + shape.width
        return parts

    return _Shape(sum(shape.width for shape in shapes) + sum(gaps), max(shape.height for shape in shapes), draw)


def _branches(branches: Sequence[_Step], fusion: _Shape) -> _Shape:
    """Retrievers below one another, each with an arrow to the fusion of their lists, and its depth on it."""
    gap = _GAP + max(_width(text, _NOTE) for text, _ in branches)
    end = _GAP + max(shape.width for _, shape in branches)
    height = sum(shape.height + _LINE for _, shape in branches) - _LINE

    def draw(x: float, y: float) -> list[str]:
        parts, top = [], y - height / 2
        for text, shape in branches:
            middle, right = top + shape.height / 2, x + _GAP + shape.width
            parts += [_arrow(x, y, x + _GAP, middle), *shape.draw(x + _GAP, middle)]
            bend = x + end + gap - _GAP / 2
            parts += [_arrow(right, middle, x + end + gap + 8, y, bend)]
            parts += [_words_at((x + end + bend) / 2, middle - 5, text, _SMALL)]
            top += shape.height + _LINE
        return [*parts, *fusion.draw(x + end + gap + 8, y)]

    return _Shape(end + gap + 8 + fusion.width, max(height, fusion.height), draw)


def _arrow(x: float, y: float, to_x: float, to_y: float, bend: float | None = None) -> str:
    line = f"M{x:.1f} {y:.1f}{'' if bend is None else f'H{bend:.1f}'}L{to_x:.1f} {to_y:.1f}"
    head = f"M{to_x - 6:.1f} {to_y - 3:.1f}L{to_x:.1f} {to_y:.1f}L{to_x - 6:.1f} {to_y + 3:.1f}"
    return f'<path d="{line}{head}" stroke="currentColor" fill="none"/>'


def _rectangle(x: float, y: float, width: float, height: float, opacity: str, style: str = "") -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {size} rx="5" fill-opacity="{opacity}" stroke="currentColor"{style}/>'


def _words_at(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle"{style}>{html_text(_cut(text))}</text>' if text else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _width(text: str, size: int) -> float:
    return len(_cut(text)) * size * _CHAR
