"""Takes out of a page of HTML what no reader of it sees, before any text is taken from it.

A page can hold text for programs alone: instructions to whatever reads it, or claims that its visible text does not make.
What is taken out is counted, so that a person can be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nlp_retrieval.evidence.reading.markup.sheets import HiddenNames, hidden_names
from nlp_retrieval.evidence.reading.markup.styles import colour, declarations, hides
from nlp_retrieval.evidence.reading.removed import Removed

__all__ = ["remove_hidden"]

_NO_TEXT = frozenset("script style link meta base input img source track param col select option datalist textarea".split())
_NEVER_SHOWN = frozenset(
    "template noscript noframes noembed iframe object embed audio video canvas desc metadata annotation annotation-xml".split()
)
_LEFT_OUT = "left-out-of-the-text"
"""The tag of what is to be removed, all at once: lxml refuses to move text with control characters from part to part."""

_WHITE = (255, 255, 255)
_NEAR = 12
"""How far apart, of 255, two colours may be in each part and still cannot be told from one another."""


def remove_hidden(page: Any) -> Removed:
    """Remove the hidden parts of a page in place, and count those that held text.

    Hidden is an element, with all that is in it, that has the attribute ``hidden`` or ``aria-hidden="true"``; whose style
    hides it (:func:`~nlp_retrieval.evidence.reading.markup.styles.hides`), in its ``style`` attribute or in a simple rule of a
    style sheet in the page; or whose colour is that of the nearest background that an attribute gives, or white where no
    element around it has a class, an id or a background of its own. Never shown, and removed as well, are comments,
    processing instructions, scripts, style sheets, ``template``, ``noscript``, the fallback text of media, and the fields
    of forms. Attributes (``alt``, ``title``, ``content`` of ``meta``) are never read as text.

    Not recognised is what only a style sheet in another file, a longer selector or a program of the page hides.

    Args:
        page: the root of the page, as lxml parsed it; the root and the body themselves are never taken for hidden, since many
            pages hide them until they have loaded.
    """
    from lxml import etree

    names = hidden_names([element.text or "" for element in page.iter("style") if _applies(element)])
    unseen: list[tuple[Any, str]] = []
    walk = etree.iterwalk(page, events=("start", "comment", "pi"))
    for event, element in walk:
        if event != "start":
            unseen.append((element, "comment" if event == "comment" else ""))
        elif element.getparent() is not None and (reason := _reason(element, names)) is not None:
            unseen.append((element, reason))
            walk.skip_subtree()
    hidden = unrendered = 0
    for element, reason in unseen:
        held = reason and (element.text if reason == "comment" else element.text_content())
        hidden += bool(held and held.strip() and reason == "hidden")
        unrendered += bool(held and held.strip() and reason != "hidden")
        if isinstance(element.tag, str):
            element.tag = _LEFT_OUT
    etree.strip_elements(page, _LEFT_OUT, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    return Removed(hidden=hidden, unrendered=unrendered)


def _applies(sheet: Any) -> bool:
    """Whether a style sheet is for what a reader with scripts sees on a screen."""
    media = sheet.attrib.get("media", "").lower()
    return sheet.getparent().tag != "noscript" and (not media.strip() or "screen" in media or "all" in media)


def _reason(element: Any, names: HiddenNames) -> str | None:
    """Why an element is left out: "hidden" or "unrendered", an empty string where it holds no text for people; or None."""
    tag, attributes = element.tag, element.attrib
    if tag in _NO_TEXT:
        return ""
    if (
        tag in _NEVER_SHOWN
        or (tag == "dialog" and "open" not in attributes)
        or (tag == "title" and element.getparent().tag != "head")
    ):
        return "unrendered"
    if tag in {"body", "head", "html"} or not attributes:
        return None
    style = declarations(attributes["style"]) if "style" in attributes else {}
    is_hidden = (
        "hidden" in attributes
        or attributes.get("aria-hidden", "").strip().lower() == "true"
        or names.match(tag, attributes)
        or hides(style)
        or _is_camouflaged(element, style)
    )
    return "hidden" if is_hidden else None


def _is_camouflaged(element: Any, style: Mapping[str, str]) -> bool:
    ink = colour(style.get("color", "") or element.attrib.get("color", "").lower())
    if ink is None:
        return False
    if ink[0] < 0:
        return True
    paper = _background(element, style)
    return paper is not None and all(abs(one - other) <= _NEAR for one, other in zip(ink, paper, strict=True))


def _background(element: Any, style: Mapping[str, str]) -> tuple[int, int, int] | None:
    """The colour behind an element; None where a style sheet or a picture may decide it."""
    while element is not None:
        given = style.get("background-color") or style.get("background") or element.attrib.get("bgcolor", "").lower()
        if given:
            found = colour(given)
            if found is None or found[0] >= 0:
                return found
        if {"class", "id", "background"} & set(element.attrib):
            return None
        element = element.getparent()
        style = {} if element is None or "style" not in element.attrib else declarations(element.attrib["style"])
    return _WHITE
