"""The declarations that apply to each element of a page, by the cascade of CSS, as in a browser without scripts.

tinycss2 parses style sheets and cssselect2 matches selectors; this module decides which rules apply (media, support, layers),
which declarations are valid, and which of them wins. Style sheets in other files are never fetched.

Source: https://www.w3.org/TR/css-cascade-5/
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import tinycss2
from cssselect2 import ElementWrapper, Matcher, compile_selector_list
from tinycss2.ast import Node

from nlp_retrieval.systems.evidence.reading.css_values import CUSTOM, is_valid, longhands

Tokens = tuple[Any, ...]
"""The component values of a declaration, without comments and white space around them."""

_MOST_STEPS = 20_000_000
"""Elements and selectors that matching a page's style sheets may examine."""

_MOST_TOKENS = 2_000
"""Component values of a declaration once its variables are replaced."""

_LONGEST_SELECTOR = 2_000
_DEEPEST_RULE = 20
_WIDTH, _HEIGHT = 1280.0, 720.0


class StylesTooCostlyError(Exception):
    """The style sheets of a page take more work than a page for people needs."""


class Element(ElementWrapper):  # type: ignore[misc]  # cssselect2 has no types
    """An element that selectors are matched against; counts the steps of matching, for the whole page."""

    steps: list[int]

    @property
    def ancestors(self) -> Iterator[Element]:
        """Yield the elements around this one, innermost first."""
        element = self.parent
        while element is not None:
            self.charge(1)
            yield element
            element = element.parent

    @property
    def previous_siblings(self) -> Iterator[Element]:
        """Yield the elements before this one, nearest first."""
        element = self.previous
        while element is not None:
            self.charge(1)
            yield element
            element = element.previous

    @property
    def etree_siblings(self) -> list[Any]:
        """Return all children of this element's parent."""
        siblings: list[Any] = self._siblings
        self.charge(len(siblings) // 8)
        return siblings

    @etree_siblings.setter
    def etree_siblings(self, siblings: list[Any]) -> None:
        self._siblings = siblings

    def iter_children(self) -> Iterator[Element]:
        """Yield the elements in this one."""
        for child in super().iter_children():
            self.charge(1)
            yield child

    def charge(self, steps: int) -> None:
        """Count work.

        Raises:
            StylesTooCostlyError: there was too much of it.
        """
        self.steps[0] += steps
        if self.steps[0] > _MOST_STEPS:
            raise StylesTooCostlyError


@dataclass(frozen=True)
class _StyleRule:
    """The declarations of a rule, by name, and the rank of its layer; a rule outside all layers has the highest."""

    layer: int
    normal: Mapping[str, Tokens]
    important: Mapping[str, Tokens]


@dataclass
class Sheets:
    """The style sheets in a page."""

    page: Any
    has_others: bool = False
    """True if the page loads a style sheet that is not in it."""
    keyframes: dict[str, Mapping[str, Tokens]] = field(default_factory=dict)
    """The last frame of each animation, by its name."""
    root: Element = field(init=False)
    _layers: dict[str, int] = field(default_factory=dict)
    _pending: list[tuple[Any, str | None, Mapping[str, Tokens], Mapping[str, Tokens]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._matcher = Matcher()
        for sheet in self.page.iter("style", "link"):
            text = self._text_of(sheet)
            if text:
                self._read(tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True), [], None, 0)
        for selectors, layer, normal, important in self._pending:
            rank = len(self._layers) if layer is None else self._layers[layer]
            for selector in selectors:
                self._matcher.add_selector(selector, _StyleRule(rank, normal, important))
        self.is_empty = not self._pending
        self._steps = [0]
        kind: Any = type("Element", (Element,), {"steps": self._steps})
        self.root = kind.from_html_root(self.page)

    def declared(self, element: Element) -> dict[str, Tokens]:
        """Return the declarations that win for an element, by the name of their property; inherited ones are not among them.

        Raises:
            StylesTooCostlyError: there was too much work on this page.
        """
        style = element.etree_element.get("style")
        matching = [] if self.is_empty else self._matching(element)
        if style is None and not matching:
            return {}
        own, own_important = declarations(tinycss2.parse_blocks_contents(style or "", skip_comments=True))
        declared: dict[str, Tokens] = {}
        for _, rule in sorted(matching, key=lambda entry: (entry[1].layer, entry[0])):
            declared |= rule.normal
        declared |= own
        for _, rule in sorted(matching, key=lambda entry: (-entry[1].layer, entry[0])):
            declared |= rule.important
        return declared | own_important

    def _matching(self, element: Element) -> list[tuple[tuple[Any, int], _StyleRule]]:
        matcher = self._matcher
        element.charge(8 + len(matcher.other_selectors))
        for name in element.classes:
            element.charge(len(matcher.class_selectors.get(name, ())))
        element.charge(len(matcher.id_selectors.get(element.id, ())))
        element.charge(len(matcher.lower_local_name_selectors.get(element.local_name, ())))
        matching = [
            ((specificity, order), rule) for specificity, order, pseudo, rule in _matches(matcher, element) if pseudo is None
        ]
        element.charge(sum(len(rule.normal) + len(rule.important) for _, rule in matching))
        return matching

    def _text_of(self, sheet: Any) -> str:
        """Return the text of a style sheet that applies to a screen; empty if it is not in the page."""
        if any(around.tag == "template" for around in sheet.iterancestors()):
            return ""
        kind = sheet.get("type", "").strip().lower()
        if kind not in ("", "text/css") or not _media_applies(tinycss2.parse_component_value_list(sheet.get("media", ""))):
            return ""
        if sheet.tag == "style":
            return sheet.text or ""
        relations = sheet.get("rel", "").lower().split()
        if "stylesheet" not in relations or "alternate" in relations or sheet.get("disabled") is not None:
            return ""
        return self._loaded(sheet.get("href", ""))

    def _loaded(self, address: str) -> str:
        text = _in_address(address)
        self.has_others |= text is None
        return text or ""

    def _read(self, rules: Iterable[Node], around: list[list[Node]], layer: str | None, depth: int) -> None:
        """Read rules as tinycss2 parses them, inside some selectors and a layer, ``depth`` rules deep."""
        if depth > _DEEPEST_RULE:
            return
        for rule in rules:
            if rule.type == "qualified-rule":
                self._style_rule(rule, around, layer, depth)
            elif rule.type == "at-rule":
                self._at_rule(rule, around, layer, depth)

    def _style_rule(self, rule: Any, around: list[list[Node]], layer: str | None, depth: int) -> None:
        prelude = _nested(rule.prelude, around[-1]) if around else list(rule.prelude)
        contents = tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True)
        self._add(prelude, contents, layer)
        inner = [node for node in contents if node.type in ("qualified-rule", "at-rule")]
        if inner:
            self._read(inner, [*around, prelude], layer, depth + 1)

    def _add(self, prelude: list[Node], contents: Iterable[Node], layer: str | None) -> None:
        normal, important = declarations(contents)
        if (normal or important) and (selectors := _selectors(prelude)):
            self._pending.append((selectors, layer, normal, important))

    def _at_rule(self, rule: Any, around: list[list[Node]], layer: str | None, depth: int) -> None:
        name = rule.lower_at_keyword
        if name == "import":
            self._import(rule, layer, depth)
        elif name == "layer":
            names = [part.strip() for part in tinycss2.serialize(rule.prelude).split(",")]
            inside = "" if layer is None else f"{layer}."
            if rule.content is None:
                for layer_name in names:
                    self._layers.setdefault(inside + layer_name, len(self._layers))
                return
            layer = f"{inside}{names[0] or len(self._layers)}"
            self._layers.setdefault(layer, len(self._layers))
            self._inside(rule, around, layer, depth)
        elif name.endswith("keyframes") and rule.content is not None:
            self._frames(rule)
        elif rule.content is not None and (
            (name == "media" and _media_applies(rule.prelude)) or (name == "supports" and _is_supported(rule.prelude))
        ):
            self._inside(rule, around, layer, depth)

    def _inside(self, rule: Any, around: list[list[Node]], layer: str | None, depth: int) -> None:
        if around:  # nested in a style rule: its declarations are those of the element
            contents = tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True)
            self._add(around[-1], contents, layer)
        else:
            contents = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
        self._read(contents, around, layer, depth + 1)

    def _import(self, rule: Any, layer: str | None, depth: int) -> None:
        values = [token for token in rule.prelude if token.type != "whitespace"]
        address = ""
        if values and values[0].type in ("string", "url"):
            address = values[0].value
        elif values and values[0].type == "function" and values[0].arguments:
            address = getattr(values[0].arguments[0], "value", "")
        text = self._loaded(str(address))
        if text and _media_applies(values[1:]):
            self._read(tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True), [], layer, depth + 1)

    def _frames(self, rule: Any) -> None:
        name = tinycss2.serialize(rule.prelude).strip().strip("\"'")
        for frame in tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True):
            if frame.type == "qualified-rule" and {"to", "100%"} & set(tinycss2.serialize(frame.prelude).lower().split()):
                self.keyframes[name] = declarations(
                    tinycss2.parse_blocks_contents(frame.content, skip_comments=True, skip_whitespace=True)
                )[0]


def _matches(matcher: Any, element: Element) -> list[tuple[Any, int, Any, _StyleRule]]:
    """Return the result of ``Matcher.match``, without comparing rules with each other."""
    lists = [matcher.id_selectors.get(element.id, ())] if element.id else []
    lists += [matcher.class_selectors[name] for name in element.classes if name in matcher.class_selectors]
    lists += [matcher.lower_local_name_selectors.get(element.local_name.lower(), ()), matcher.other_selectors]
    lists += [matcher.lang_attr_selectors] if element.etree_element.get("lang") else []
    return [
        (specificity, order, pseudo, rule)
        for entries in lists
        for test, specificity, order, pseudo, rule in entries
        if pseudo is None and test(element)
    ]


def declarations(contents: Iterable[Any]) -> tuple[dict[str, Tokens], dict[str, Tokens]]:
    """Return the valid declarations of a block by the name of their property, and those that are important.

    Only properties that can hide text are kept, and variables. A later valid declaration replaces an earlier one.
    """
    normal: dict[str, Tokens] = {}
    important: dict[str, Tokens] = {}
    for node in contents:
        if node.type != "declaration":
            continue
        name = node.name if node.name.startswith(CUSTOM) else node.lower_name
        value = _trimmed(node.value)
        into = important if node.important else normal
        if name.startswith(CUSTOM):
            into[name] = value
            continue
        if any(_has_variable(token) for token in value):
            into |= dict.fromkeys(longhands(name, value, pending=True), (name, *value))
            continue
        into |= longhands(name, value)
    for name in important:
        normal.pop(name, None)
    return normal, important


def style_of(declared: Mapping[str, Tokens], inherited: Mapping[str, Tokens]) -> tuple[dict[str, Tokens], Mapping[str, Tokens]]:
    """Return declarations with their variables replaced, and the variables that the element's children inherit."""
    own = {name: value for name, value in declared.items() if name.startswith(CUSTOM)}
    variables = {**inherited, **own} if own else inherited
    style: dict[str, Tokens] = {}
    for name, value in declared.items():
        if name.startswith(CUSTOM):
            continue
        if value and isinstance(value[0], str):  # the property as it was written, and a value with variables
            replaced = _replaced(value[1:], variables)
            longhand_values = {} if replaced is None else longhands(value[0], replaced)
            if name in longhand_values:
                style[name] = longhand_values[name]
            continue
        style[name] = value
    return style, variables


def _replaced(value: Sequence[Any], variables: Mapping[str, Tokens]) -> Tokens | None:
    """Return a value with its variables replaced; None if one is missing, refers to itself, or the value grows too long."""
    room = [_MOST_TOKENS]

    def put(tokens: Sequence[Any], seen: frozenset[str]) -> list[Any]:
        done: list[Any] = []
        for token in tokens:
            room[0] -= 1
            if room[0] < 0 or len(seen) > _DEEPEST_RULE:
                raise ValueError
            if token.type == "function" and token.lower_name == "var":
                arguments = _trimmed(token.arguments)
                name = getattr(arguments[0], "value", "") if arguments else ""
                if name in variables and name not in seen:
                    done += put(variables[name], seen | {name})
                elif len(arguments) > 1 and any(part == "," for part in arguments):
                    at = next(position for position, part in enumerate(arguments) if part == ",")
                    done += put(arguments[at + 1 :], seen)
                else:
                    raise ValueError
            elif token.type == "function" and any(map(_has_variable, token.arguments)):
                inner = put(token.arguments, seen)
                done.append(tinycss2.ast.FunctionBlock(token.source_line, token.source_column, token.name, inner))
            else:
                done.append(token)
        return done

    try:
        return _trimmed(put(value, frozenset()))
    except (ValueError, RecursionError):
        return None


def _has_variable(token: Any) -> bool:
    if token.type != "function":
        return False
    return token.lower_name == "var" or any(map(_has_variable, token.arguments))


def _trimmed(tokens: Iterable[Any]) -> Tokens:
    kept = [token for token in tokens if token.type != "comment"]
    while kept and kept[0].type == "whitespace":
        del kept[0]
    while kept and kept[-1].type == "whitespace":
        del kept[-1]
    return tuple(kept)


def _selectors(prelude: list[Node]) -> list[Any]:
    """Return the selectors of a rule; empty if a browser, or cssselect2, does not know one of them."""
    text = tinycss2.serialize(prelude)
    if len(text) > _LONGEST_SELECTOR * 5:  # noqa: SIM108
        parts = []
    else:
        parts = [prelude] if len(text) <= _LONGEST_SELECTOR else _divided(prelude)
    try:
        return [selector for part in parts for selector in compile_selector_list(part)]
    except Exception:  # cssselect2 compiles selectors to Python, whose parser has limits and errors of its own
        return []


def _divided(prelude: list[Node]) -> list[list[Node]]:
    parts: list[list[Node]] = [[]]
    for token in prelude:
        if token == ",":  # noqa: S105
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _nested(prelude: list[Node], parent: list[Node]) -> list[Node]:
    """Return a nested selector as one outside of any rule."""
    text, around = tinycss2.serialize(prelude).strip(), f":is({tinycss2.serialize(parent).strip()})"
    whole = text.replace("&", around) if "&" in text else ", ".join(f"{around} {part.strip()}" for part in text.split(","))
    return [] if len(whole) > _LONGEST_SELECTOR else list(tinycss2.parse_component_value_list(whole))


def _in_address(address: str) -> str | None:
    """Return the style sheet in a ``data:`` address; None for every other address."""
    head, comma, data = address.strip().partition(",")
    if not comma or not head.lower().startswith("data:"):
        return None
    raw = unquote_to_bytes(data)
    try:
        return (base64.b64decode(raw) if head.lower().endswith(";base64") else raw).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _media_applies(prelude: Iterable[Any]) -> bool:
    """Return whether one of several media queries matches a screen of a usual size and a browser without scripts."""
    tokens = [token for token in prelude if token.type != "comment"]
    if not any(token.type != "whitespace" for token in tokens):
        return True
    return any(_query(part) for part in _divided(tokens))


def _query(tokens: list[Any]) -> bool:
    words = [token for token in tokens if token.type != "whitespace"]
    negated = bool(words) and getattr(words[0], "lower_value", "") == "not" and len(words) > 1 and words[1].type == "ident"
    words = words[1:] if words and (negated or getattr(words[0], "lower_value", "") == "only") else words
    if words and words[0].type == "ident" and words[0].lower_value not in ("not", "and", "or"):
        fits = words[0].lower_value in ("all", "screen")
        words = words[2:] if len(words) > 1 and getattr(words[1], "lower_value", "") == "and" else words[1:]
        fits = fits and (not words or _condition(words, _feature))
        return fits != negated
    return _condition(words, _feature)


def _condition(words: Sequence[Any], holds: Callable[[Any], bool], depth: int = 0) -> bool:
    """Evaluate a condition of ``not``, ``and`` and ``or`` over those in brackets."""
    result, operator, negated = True, "and", False
    if depth > _DEEPEST_RULE:
        return False
    for word in words:
        if word.type == "whitespace":
            continue
        if word.type == "ident":
            negated ^= word.lower_value == "not"
            operator = word.lower_value if word.lower_value in ("and", "or") else operator
            continue
        if word.type == "() block" and any(token.type in ("() block", "function") for token in word.content):
            value = _condition(word.content, holds, depth + 1) if not _is_declaration(word) else holds(word)
        else:
            value = holds(word)
        value ^= negated
        result, negated = (result and value) if operator == "and" else (result or value), False
    return result


def _is_declaration(block: Any) -> bool:
    return any(part == ":" for part in block.content)


def _feature(block: Any) -> bool:  # noqa: PLR0911
    """Return whether a feature of a medium is that of a screen of a usual size."""
    if block.type != "() block":
        return False
    words = [token for token in block.content if token.type != "whitespace"]
    if not words or words[0].type not in ("ident", "dimension", "number"):
        return False
    sizes = {"width": _WIDTH, "height": _HEIGHT, "device-width": _WIDTH, "device-height": _HEIGHT}
    name = getattr(words[0], "lower_value", "")
    edge, _, size = name.partition("-")
    value = words[2] if len(words) > 2 and words[1] == ":" else None
    if edge in ("min", "max") and size in sizes:
        pixels = None if value is None else _pixels(value)
        return pixels is not None and (sizes[size] >= pixels if edge == "min" else sizes[size] <= pixels)
    if value is None and any(token in ("<", ">") for token in words):
        return _range(words, sizes)
    if name in sizes:
        return value is None or _pixels(value) == sizes[name]
    usual = {
        "orientation": "landscape",
        "prefers-color-scheme": "light",
        "prefers-reduced-motion": "no-preference",
        "prefers-contrast": "no-preference",
        "hover": "hover",
        "any-hover": "hover",
        "pointer": "fine",
        "any-pointer": "fine",
        "scripting": "none",
        "display-mode": "browser",
        "update": "fast",
        "forced-colors": "none",
        "inverted-colors": "none",
    }
    if name in ("color", "min-color"):
        return True
    if name not in usual:
        return False
    if value is None:
        return usual[name] not in ("none", "no-preference")
    return getattr(value, "lower_value", "") == usual[name]


def _range(words: list[Any], sizes: Mapping[str, float]) -> bool:
    """Evaluate ``width >= 600px`` and ``400px < width <= 700px``."""
    values = [sizes.get(getattr(word, "lower_value", ""), _pixels(word)) for word in words if word.type != "literal"]
    marks = "".join(word.value if word.type == "literal" else " " for word in words).split()
    if None in values or len(values) != len(marks) + 1:
        return False
    compare: dict[str, Callable[[Any, Any], bool]] = {
        "<": lambda low, high: low < high,
        "<=": lambda low, high: low <= high,
        ">": lambda low, high: low > high,
        ">=": lambda low, high: low >= high,
    }
    return all(mark in compare and compare[mark](*values[number : number + 2]) for number, mark in enumerate(marks))


def _pixels(value: Any) -> float | None:
    if value.type == "number":
        return float(value.value)
    if value.type == "dimension":
        return float(value.value) * {"em": 16.0, "rem": 16.0, "px": 1.0}.get(value.lower_unit, 1.0)
    return None


def _is_supported(prelude: Sequence[Any]) -> bool:
    return _condition(prelude, _supports)


def _supports(block: Any) -> bool:
    """Return whether browsers know a declaration, or a selector."""
    if block.type == "function":
        if block.lower_name == "selector":
            return bool(_selectors(list(block.arguments)))
        return False
    if block.type != "() block":
        return False
    declared = tinycss2.parse_one_declaration(block.content)
    return declared.type == "declaration" and (
        declared.name.startswith(CUSTOM) or is_valid(declared.lower_name, _trimmed(declared.value))
    )
