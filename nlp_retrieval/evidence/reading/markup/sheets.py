"""Which classes and ids the style sheets inside a page hide, by rules simple enough to be sure of.

A full cascade takes a browser. Counted are rules at the top level whose selector is one class or one id, with or without the
name of a tag; a name that any other rule shows again is left alone, as the tabs of a page are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nlp_retrieval.evidence.reading.markup.styles import declarations, hides

__all__ = ["HiddenNames", "hidden_names"]

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_SIMPLE = re.compile(r"([a-zA-Z][a-zA-Z0-9]{0,20}|\*?)([.#])([-\w]{1,100})")
_NAME = re.compile(r"[.#]([-\w]{1,100})")
_SHOWS = ("display", "visibility", "opacity", "font-size", "left", "top", "text-indent", "clip", "height", "width", "position")


@dataclass(frozen=True)
class HiddenNames:
    """What is hidden.

    Args:
        selectors: triples of the name of a tag (empty for any), ``.`` or ``#``, and the class or id.
    """

    selectors: frozenset[tuple[str, str, str]]

    def match(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Whether an element is among what is hidden."""
        if not self.selectors:
            return False
        found = [("#", attributes["id"].strip())] if "id" in attributes else []
        found += [(".", name) for name in attributes.get("class", "").split()]
        return any((any_tag, mark, name) in self.selectors for mark, name in found for any_tag in ("", tag))


def hidden_names(sheets: Iterable[str]) -> HiddenNames:
    """Return what the style sheets of a page hide.

    Args:
        sheets: the text of each ``style`` element, in order.
    """
    hidden: set[tuple[str, str, str]] = set()
    shown: set[str] = set()
    for sheet in sheets:
        for selectors, body, nested in _rules(_COMMENT.sub("", sheet)):
            style = declarations(body)
            is_hidden = hides(style)
            if not is_hidden and not any(name in style for name in _SHOWS):
                continue
            for selector in selectors.split(","):
                simple = _SIMPLE.fullmatch(selector.strip())
                if is_hidden and simple and not nested:
                    hidden.add((simple[1].lower().strip("*"), simple[2], simple[3]))
                elif not is_hidden:
                    shown.update(_NAME.findall(selector))
    return HiddenNames(frozenset(one for one in hidden if one[2] not in shown))


def _rules(sheet: str) -> Iterable[tuple[str, str, bool]]:
    """Yield selectors, declarations, and whether the rule stands inside another (``@media``), in one pass."""
    pieces = re.split(r"([{}])", sheet)
    opened: list[str] = []
    for position in range(0, len(pieces), 2):
        mark = pieces[position + 1] if position + 1 < len(pieces) else ""
        if mark == "{":
            opened.append(pieces[position].rpartition(";")[2].strip())
        elif opened:
            selectors = opened.pop()
            if not selectors.startswith("@"):
                yield selectors, pieces[position], bool(opened)
