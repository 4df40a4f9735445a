"""Counts of what was omitted from a source because its readers do not see it, and the sentence that reports them."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Removed"]

_WORDS = {
    "hidden": ("hidden element", "hidden elements"),
    "unrendered": ("comment or element that browsers do not show", "comments or elements that browsers do not show"),
    "zero_width": ("zero-width character", "zero-width characters"),
    "directional": ("control of the writing direction", "controls of the writing direction"),
    "tags": ("Unicode tag character", "Unicode tag characters"),
    "controls": ("control character", "control characters"),
    "struck": ("struck passage", "struck passages"),
    "marks": ("footnote mark", "footnote marks"),
}


@dataclass(frozen=True)
class Removed:
    """Counts of what was removed from a text; two of them can be added.

    Args:
        hidden: elements of a page with text that is hidden by style or attribute.
        unrendered: comments, and elements with text that a browser does not show: template, noscript and the like.
        zero_width: characters without width or function, including soft hyphens.
        directional: characters that change the direction of the writing around them.
        tags: characters of the Unicode tag block, which mirror ASCII and are invisible.
        controls: control characters other than tab and line feed, and lone surrogates.
        struck: passages that the author struck out.
        marks: marks of footnotes, which are not part of a sentence.
    """

    hidden: int = 0
    unrendered: int = 0
    zero_width: int = 0
    directional: int = 0
    tags: int = 0
    controls: int = 0
    struck: int = 0
    marks: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(*(getattr(self, kind.name) + getattr(other, kind.name) for kind in fields(self)))

    def __bool__(self) -> bool:
        return any(getattr(self, kind.name) for kind in fields(self))

    @property
    def suspicious(self) -> bool:
        """Return whether more than usual was removed: hidden elements, tag characters or directional controls."""
        return bool(self.hidden or self.tags or self.directional)

    def describe(self) -> str:
        """Return what was omitted, for people: ``2 hidden elements, 1 zero-width character``; empty for nothing."""
        counts = {kind.name: int(getattr(self, kind.name)) for kind in fields(self)}
        return ", ".join(f"{count:,} {_WORDS[name][count != 1]}" for name, count in counts.items() if count)
