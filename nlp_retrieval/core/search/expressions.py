"""Operators that write a :class:`~nlp_retrieval.core.search.searcher.Searcher` in one line: docs/SEARCH.md has a table of them.

>>> from nlp_retrieval import Bm25Retriever, OverlapReranker, Searcher
>>> bm25, short, overlap = Bm25Retriever(), Bm25Retriever(b=0.2), OverlapReranker()
>>> hybrid = bm25 % 50 + short % 20 >> overlap % 10
>>> hybrid == Searcher([bm25, short], reranker=overlap, depth={"bm25": 50, "bm25-2": 20, "overlap": 10})
True

``x + y + z`` is one fusion of three, with parentheses or without. A searcher with a processor, a reranker or another fusion
becomes one retriever, and so does a sum that is cut or weighted: ``(x + y) % 50``, ``0.7 * (x + y) + 0.3 * z``. An expression
has no index yet. One without a meaning raises a :class:`~nlp_retrieval.errors.ConfigurationError`. Its drawing is SVG: the
stages from left to right, the depth of each list on its arrow, and in each box the settings that are not the default. There are
no scripts and no colours: any background will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nlp_retrieval.core.components.component import Config, parameters_of, to_plain
from nlp_retrieval.core.components.registry import component_class, numbered_names
from nlp_retrieval.core.queries import POOL_DEPTH
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.core.tables import html_text
from nlp_retrieval.errors import InputError


def _operator(sign: str, *, turned: bool = False) -> Any:
    def expressed(self: Any, other: Any) -> Any:
        searchers: Any = component_class("searchers", "searcher")  # by its name: retrievers and rerankers do not import it
        return searchers.expressed(other, sign, self) if turned else searchers.expressed(self, sign, other)

    return expressed


class Expression:
    """Gives a class the operators of this module."""

    __array_ufunc__ = None  # numpy's numbers are weights too, and do not make arrays of objects

    def draw(self) -> str:
        """Return a picture of the stages, left to right, as the text of an SVG file; a notebook shows it by itself.

        Examples:
            >>> _ = Path("hybrid.svg").write_text((Bm25Retriever() % 50 >> OverlapReranker() % 10).draw())
        """
        part: Any = self.reranker if isinstance(self, FirstCandidates) else self
        return drawing(part.config, part.kind, self.n if isinstance(self, FirstCandidates) else None)

    def _repr_html_(self) -> str:
        return f"{self.draw()}<br><code>{html_text(repr(self))}</code>"

    __mod__ = _operator("%")
    __mul__ = __rmul__ = _operator("*", turned=True)
    __add__ = __or__ = _operator("+")
    __radd__ = __ror__ = _operator("+", turned=True)
    __and__, __rand__ = _operator("&"), _operator("&", turned=True)
    __rshift__, __rrshift__ = _operator(">>"), _operator(">>", turned=True)


@dataclass(frozen=True, repr=False)
class FirstCandidates(Expression):
    """A reranker and its depth in the searcher that it is given to: ``reranker % n``."""

    reranker: Any
    n: int

    def __repr__(self) -> str:
        return f"{self.reranker!r} % {self.n}"


# Drawings.

NAMESPACE = "http://www.w3.org/2000/svg"
_FONT, _NOTE, _CHAR = 13, 11, 0.6
"""Sizes of texts in pixels, and the width of a character as a share of them."""
_SMALL = f' font-size="{_NOTE}" opacity=".75"'
_PAD, _LINE, _GAP = 10, 15, 26
_LONGEST = 34


@dataclass(frozen=True)
class _Shape:
    """Something drawn, with its left edge at 0 and its middle at a height of 0."""

    width: float
    height: float
    svg: str


_Step = tuple[str, _Shape]
"""A shape, and the text on the arrow that leads to it."""


def drawing(config: Config, kind: str = "searchers", first: int | None = None) -> str:
    """Return the text of an SVG file; ``first`` is how many candidates a reranker reorders."""
    steps = _stages(config) if _is_composed(config) else [(f"first {first}" if first else "", _box(config, kind))]
    depth = config.get("depth") if _is_composed(config) and len(steps) == 1 else None
    ends = f"k, at most {depth}" if isinstance(depth, int) else "k"
    begin = _text("candidates" if kind == "rerankers" else "query")
    shape = _row([("", begin), *steps, (ends, _text("hits"))])
    width, height = f"{shape.width + 8:.0f}", f"{shape.height + 8:.0f}"
    return (
        f'<svg xmlns="{NAMESPACE}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="{_FONT}" fill="currentColor">{_at(4, shape.height / 2 + 4, shape)}</svg>'
    )


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
        label: _framed(label, _row(_stages(part))) if _is_composed(part) else _box(part, "retrievers", label)
        for label, part in labels.items()
    }
    steps = [("", _box(config["processor"], "processors"))] if config.get("processor") else []
    arrow, candidates = "sub-queries" if steps else "", ""
    if len(labels) == 1 and fusion["name"] == "raw":
        ((label, shape),) = shapes.items()
        steps.append((arrow, shape))
        candidates = shown[label]
    else:
        weights = fusion.get("weights")
        if isinstance(weights, Mapping | list):
            values = weights.values() if isinstance(weights, Mapping) else weights
            shown = {label: f"{value:g} · {shown[label]}" for label, value in zip(labels, values, strict=False)}
        steps.append((arrow, _branches([(shown[label], shape) for label, shape in shapes.items()], _box(fusion, "fusions"))))
    for number, (label, part) in enumerate(rerankers.items()):
        first = f"first {depths[label]}" if depths.get(label) and (number or str(depths[label]) != candidates) else ""
        steps.append((", ".join(filter(None, ("" if number else candidates, first))), _box(part, "rerankers")))
    if is_apart:
        quota = f", quota={config['quota']}" if config.get("quota") else ""
        steps.append(("", _titled(f"interleave{quota}")))
    return steps


def _is_composed(config: Config) -> bool:
    return config.get("name") == "searcher" and bool(config.get("retrievers"))


def _numbered(parts: Sequence[Config]) -> dict[str, Config]:
    return dict(zip(numbered_names(part["name"] for part in parts), parts, strict=True))


def _box(config: Config, kind: str, label: str = "") -> _Shape:
    """A component, with its settings that are not the default."""
    name = str(config["name"])
    title = label if label.startswith(name) else f"{label} ({name})" if label else name
    shown = without_secrets({key: value for key, value in config.items() if key not in ("name", "weights")})
    try:
        usual = {key: to_plain(parameter.default) for key, parameter in parameters_of(component_class(kind, name)).items()}
    except (InputError, ImportError):  # a component that is not installed here
        usual = shown
    return _titled(title, [f"{key}={_brief(value)}" for key, value in shown.items() if not _is_usual(value, usual.get(key))])


def _is_usual(value: Any, usual: Any) -> bool:
    return value == usual or (isinstance(value, Mapping) and value.get("name") == usual and "model" not in value)


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        model = value.get("model")
        return model.rstrip("/").rsplit("/", 1)[-1] if isinstance(model, str) else str(value.get("name"))
    if isinstance(value, list):
        return "+".join(map(_brief, value))
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


# How it is drawn.


def _titled(title: str, notes: Sequence[str] = ()) -> _Shape:
    """A box with a title, and notes below it."""
    width = 2 * _PAD + max(_width(title, _FONT), *(_width(note, _NOTE) for note in notes), 0)
    height = 2 * _PAD - 4 + _LINE * (1 + len(notes))
    below = 4 - _LINE * len(notes) / 2
    lines = [_words(width / 2, below + _LINE * number, note, _SMALL) for number, note in enumerate(notes, 1)]
    frame = _rectangle(width, height, ".06")
    return _Shape(width, height, "".join([frame, _words(width / 2, below, title, ' font-weight="bold"'), *lines]))


def _text(words: str) -> _Shape:
    width = _width(words, _FONT)
    return _Shape(width, _LINE, _words(width / 2, 4, words))


def _framed(title: str, inner: _Shape) -> _Shape:
    """A searcher inside another one."""
    width, height = max(inner.width, _width(title, _NOTE)) + 2 * _PAD, inner.height + 2 * _PAD + _LINE
    frame = _rectangle(width, height, ".03", ' stroke-dasharray="4 3"')
    return _Shape(width, height, frame + _words(width / 2, _LINE - height / 2, title, _SMALL) + _at(_PAD, _LINE / 2, inner))


def _row(steps: Sequence[_Step]) -> _Shape:
    """Shapes from left to right, with an arrow to each but the first."""
    parts, x = list[str](), 0.0
    for number, (text, shape) in enumerate(steps):
        if number:
            gap = _GAP + _width(text, _NOTE)
            parts += [_arrow(x, 0, x + gap, 0), _words(x + gap / 2 - 3, -6, text, _SMALL)]
            x += gap
        parts.append(_at(x, 0, shape))
        x += shape.width
    return _Shape(x, max(shape.height for _, shape in steps), "".join(parts))


def _branches(branches: Sequence[_Step], fusion: _Shape) -> _Shape:
    """Retrievers below one another, each with an arrow to the fusion of their lists, and its depth on it."""
    end = _GAP + max(shape.width for _, shape in branches)
    bend = end + _GAP / 2 + max(_width(text, _NOTE) for text, _ in branches)
    last = bend + _GAP / 2 + 8
    height = sum(shape.height + _LINE for _, shape in branches) - _LINE
    parts, top = list[str](), -height / 2
    for text, shape in branches:
        middle = top + shape.height / 2
        parts += [_arrow(0, 0, _GAP, middle), _at(_GAP, middle, shape), _arrow(_GAP + shape.width, middle, last, 0, bend)]
        parts.append(_words((end + bend) / 2, middle - 5, text, _SMALL))
        top += shape.height + _LINE
    return _Shape(last + fusion.width, max(height, fusion.height), "".join([*parts, _at(last, 0, fusion)]))


def _at(x: float, y: float, shape: _Shape) -> str:
    return f'<g transform="translate({x:.1f} {y:.1f})">{shape.svg}</g>'


def _arrow(x: float, y: float, to_x: float, to_y: float, bend: float | None = None) -> str:
    line = f"M{x:.1f} {y:.1f}{'' if bend is None else f'H{bend:.1f}'}L{to_x:.1f} {to_y:.1f}"
    head = f"M{to_x - 6:.1f} {to_y - 3:.1f}L{to_x:.1f} {to_y:.1f}L{to_x - 6:.1f} {to_y + 3:.1f}"
    return f'<path d="{line}{head}" stroke="currentColor" fill="none"/>'


def _rectangle(width: float, height: float, opacity: str, style: str = "") -> str:
    size = f'y="{-height / 2:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {size} rx="5" fill-opacity="{opacity}" stroke="currentColor"{style}/>'


def _words(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle"{style}>{html_text(_cut(text))}</text>' if text else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _width(text: str, size: int) -> float:
    return len(_cut(text)) * size * _CHAR
