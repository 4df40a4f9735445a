"""A drawing of a searcher as SVG: its stages from left to right, the depth of each list on its arrow.

A processor fans out into sub-queries, and a searcher inside another is a box around its own stages. A box shows the settings
that are not the default; its tooltip has all of them. The drawing has no scripts and no colours of its own, so it is
readable on any background.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
_PAD, _LINE, _GAP, _ROW = 10, 15, 26, 16
_LONGEST = 34
_NOTES = 3
_SUBQUERIES = 3


@dataclass(frozen=True)
class _Shape:
    """Something to draw: ``draw(x, y)`` returns its elements, with its left edge at x and its middle at y."""

    width: float
    height: float
    draw: Callable[[float, float], list[str]]


def drawing(config: Config, kind: str = "searchers", first: int | None = None) -> str:
    """Return the text of an SVG file.

    Args:
        config: the ``config`` of a component; all but a ``Searcher`` is a single box.
        kind: its kind: ``searchers``, ``retrievers`` or ``rerankers``.
        first: of a reranker, how many candidates it reorders.

    Examples:
        >>> drawing(Searcher(["bm25"], reranker="overlap").config)[:4]
        '<svg'
    """
    begin = "candidates" if kind == "rerankers" else "query"
    arrows = _arrows(config) if kind == "searchers" else [(f"first {first}" if first else "", False), ("", False)]
    shapes = _stages(config) if kind == "searchers" else [_box(config, kind)]
    shape = _row([_text(begin), *shapes, _text("hits")], arrows)
    width, height = f"{shape.width + 8:.0f}", f"{shape.height + 8:.0f}"
    head = (
        f'<svg xmlns="{NAMESPACE}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{html_text(_words(config))}" font-family="sans-serif" font-size="{_FONT}" '
        'fill="currentColor">'
    )
    return "".join([head, *shape.draw(4, shape.height / 2 + 4), "</svg>"])


# What is drawn: the stages of a searcher, and what stands on the arrows before each of them and after the last.


def _stages(config: Config) -> list[_Shape]:
    if not _is_composed(config):
        return [_box(config, "searchers")]
    labels = _labels(config)
    weights = _weights(config, len(labels))
    branches = [
        (f"{weight}{_shown_depth(config, label)}", _retriever(label, retriever))
        for (label, retriever), weight in zip(labels.items(), weights, strict=True)
    ]
    shapes = [_box(config["processor"], "processors")] if config.get("processor") else []
    is_alone = len(branches) == 1 and (config.get("fusion") or {"name": "raw"})["name"] == "raw"
    shapes.append(branches[0][1] if is_alone else _branches(branches, _box(config["fusion"], "fusions")))
    shapes += [_box(reranker, "rerankers") for reranker in _rerankers(config).values()]
    if config.get("scope") == "per_subquery":
        quota = config.get("quota")
        shapes.append(_labelled("interleave", [f"quota={quota}"] if quota else [], "the lists of the sub-queries, by rank"))
    return shapes


def _arrows(config: Config) -> list[tuple[str, bool]]:
    """The text on each arrow, and whether it carries several sub-queries."""
    if not _is_composed(config):
        return [("", False), ("k", False)]
    labels, rerankers = _labels(config), _rerankers(config)
    is_apart = config.get("scope") == "per_subquery"
    arrows = [("", False), ("", True)] if config.get("processor") else [("", False)]
    found = _shown_depth(config, next(iter(labels))) if len(labels) == 1 else ""
    for number, label in enumerate(rerankers):
        depth = config["depth"].get(label) if isinstance(config.get("depth"), Mapping) else None
        arrows.append((f"first {depth}" if depth else found if number == 0 else "", is_apart))
    return [*arrows, *([("", True)] if is_apart else []), ("k", False)]


def _retriever(label: str, config: Config) -> _Shape:
    if not _is_composed(config):
        return _box(config, "retrievers", label)
    return _framed(label, _row(_stages(config), _arrows(config)[1:-1]))


def _is_composed(config: Config) -> bool:
    return config.get("name") == "searcher" and bool(config.get("retrievers"))


def _labels(config: Config) -> dict[str, Config]:
    retrievers = config["retrievers"]
    return dict(retrievers) if isinstance(retrievers, Mapping) else _numbered(retrievers)


def _rerankers(config: Config) -> dict[str, Config]:
    given = config.get("reranker") or []
    return _numbered(given if isinstance(given, list) else [given])


def _numbered(parts: Sequence[Config]) -> dict[str, Config]:
    return dict(zip(numbered_names(part["name"] for part in parts), parts, strict=True))


def _weights(config: Config, n: int) -> list[str]:
    fusion = config.get("fusion") or {}
    given = fusion.get("weights")
    values = list(given.values()) if isinstance(given, Mapping) else given
    return [f"{value:g} · " for value in values] if isinstance(values, list) and len(values) == n else [""] * n


def _shown_depth(config: Config, label: str) -> str:
    depth = config.get("depth")
    if isinstance(depth, Mapping):
        depth = depth.get(label)
    is_single = len(config["retrievers"]) == 1 and not config.get("reranker") and config.get("scope") != "per_subquery"
    return str(depth or ("k" if is_single else POOL_DEPTH))


def _words(config: Config) -> str:
    """The drawing in words, for people who do not see it."""
    if not _is_composed(config):
        return str(config.get("name"))
    parts = [config["processor"]["name"]] if config.get("processor") else []
    found = [f"({_words(part)})" if _is_composed(part) else label for label, part in _labels(config).items()]
    fused = f" by {config['fusion']['name']}" if len(found) > 1 and config.get("fusion") else ""
    return ", then ".join([*parts, " + ".join(found) + fused, *_rerankers(config)])


# How it is drawn.


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
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _labelled(title: str, notes: Sequence[str], tooltip: str) -> _Shape:
    lines = list(map(_cut, notes if len(notes) <= _NOTES else [*notes[: _NOTES - 1], f"and {len(notes) - _NOTES + 1} more"]))
    width = 2 * _PAD + max(_width(title, _FONT), *(_width(line, _NOTE) for line in lines), 0)
    height = 2 * _PAD - 4 + _LINE * (1 + len(lines))

    def draw(x: float, y: float) -> list[str]:
        top, middle = y - height / 2, x + width / 2
        texts = [_words_at(middle, top + _PAD + 9, _cut(title), ' font-weight="bold"')]
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
        top = y - height / 2
        name = _words_at(x + _PAD, top + _LINE, title, _SMALL, "start")
        return [_rectangle(x, top, width, height, ".03", dashed=True), name, *inner.draw(x + _PAD, y + _LINE / 2)]

    return _Shape(width, height, draw)


def _row(shapes: Sequence[_Shape], arrows: Iterable[tuple[str, bool]]) -> _Shape:
    """Shapes in a row, with an arrow between each two: its text, and whether it is a fan of sub-queries."""
    between = [(text, is_fan, _GAP + _width(text, _NOTE)) for text, is_fan in arrows]
    width = sum(shape.width for shape in shapes) + sum(gap for *_, gap in between)

    def draw(x: float, y: float) -> list[str]:
        parts: list[str] = []
        for number, shape in enumerate(shapes):
            parts += shape.draw(x, y)
            x += shape.width
            if number < len(between):
                text, is_fan, gap = between[number]
                parts += _fan(x, x + gap, y) if is_fan else [_arrow(x, y, x + gap, y)]
                parts += [_words_at(x + gap / 2 - 3, y - 6, text, _SMALL)] if text else []
                x += gap
        return parts

    return _Shape(width, max(shape.height for shape in shapes), draw)


def _branches(branches: Sequence[tuple[str, _Shape]], fusion: _Shape) -> _Shape:
    """Retrievers below one another, each with its depth, and the fusion of their lists."""
    widest = max(shape.width for _, shape in branches)
    gap = _GAP + max(_width(text, _NOTE) for text, _ in branches)
    height = sum(shape.height for _, shape in branches) + _ROW * (len(branches) - 1)

    def draw(x: float, y: float) -> list[str]:
        parts, top = [], y - height / 2
        for text, shape in branches:
            middle, left = top + shape.height / 2, x + _GAP
            right, end = left + shape.width, left + widest
            bend = end + gap - _GAP / 2
            parts += [_arrow(x, y, left, middle), *shape.draw(left, middle)]
            parts += [f'<path d="M{right:.1f} {middle:.1f}H{bend:.1f}" stroke="currentColor" fill="none"/>']
            parts += [
                _arrow(bend, middle, end + gap + 8, y),
                _words_at((end + bend) / 2, middle - 5, text, _SMALL),
            ]
            top += shape.height + _ROW
        return [*parts, *fusion.draw(x + _GAP + widest + gap + 8, y)]

    return _Shape(_GAP + widest + gap + 8 + fusion.width, max(height, fusion.height), draw)


def _fan(x: float, end: float, y: float) -> list[str]:
    return [_arrow(x, y, end, y + 7 * (number - _SUBQUERIES // 2)) for number in range(_SUBQUERIES)]


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    head = f"M{to_x - 6:.1f} {to_y - 3:.1f}L{to_x:.1f} {to_y:.1f}L{to_x - 6:.1f} {to_y + 3:.1f}"
    return f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}{head}" stroke="currentColor" fill="none"/>'


def _rectangle(x: float, y: float, width: float, height: float, opacity: str, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {size} rx="5" fill-opacity="{opacity}" stroke="currentColor"{dashes}/>'


def _words_at(x: float, y: float, text: str, style: str = "", anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{html_text(text)}</text>'


def _width(text: str, size: int) -> float:
    return len(_cut(text)) * size * _CHAR
