"""Patterns that take time linear in the text, whatever they and it are: RE2 (Cox, 2010), and bounds on their size.

RE2 knows neither look-around nor references to groups; a pattern with one of them does not compile, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from nlp_retrieval.errors import ConfigurationError, DependencyError, install

__all__ = ["LinearPattern", "in_characters"]

MOST_MATCHES = 1000
_LONGEST = 1000
_LARGEST = 5000
"""Limits of a pattern: its characters, and the instructions that RE2 makes of it; time is bounded by their number."""


@dataclass(frozen=True)
class LinearPattern:
    """A compiled pattern.

    Args:
        pattern: in RE2's syntax.
    """

    pattern: str
    _compiled: Any

    @staticmethod
    def compiled(pattern: str, where: str = "pattern") -> LinearPattern:
        """Compile a pattern; case is not compared.

        Args:
            pattern: in RE2's syntax.
            where: where it stands, for messages.

        Raises:
            ConfigurationError: it does not compile, is too large, or matches the empty text and so everywhere.
            DependencyError: RE2 is not installed.
        """
        try:
            return _compiled(pattern)
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from None

    def spans(self, data: bytes, most: int = MOST_MATCHES) -> list[tuple[int, int]]:
        """Return where the pattern matches a text in UTF-8, in bytes: from left to right, not overlapping, none empty.

        Args:
            data: the text.
            most: so many places at most; each may take a pass over the rest of the text.
        """
        spans = (match.span() for match in self._compiled.finditer(data))
        return [(begin, end) for begin, end in islice(spans, most) if end > begin]


def in_characters(data: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in the bytes of a text in UTF-8 as spans in its characters."""
    if data.isascii():
        return spans
    begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    before = np.concatenate([[0], np.cumsum(begins)])
    return [(int(before[begin]), int(before[end])) for begin, end in spans]


@lru_cache(maxsize=10_000)
def _compiled(pattern: str) -> LinearPattern:
    try:
        import re2
    except ImportError:
        raise DependencyError(f"patterns need RE2: {install('signals')}") from None
    shown = pattern if len(pattern) <= 80 else f"{pattern[:77]}..."
    if len(pattern) > _LONGEST:
        raise ConfigurationError(f"the pattern {shown!r} has {len(pattern):,} characters; {_LONGEST:,} are allowed")
    try:
        made = re2.compile(pattern.encode("utf-8"), _options())
    except re2.error as error:
        said = error.args[0] if error.args else "unknown error"
        reason = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise ConfigurationError(
            f"the pattern {shown!r} does not compile: {reason} (patterns are RE2's: without look-around and back-references)"
        ) from None
    if made.programsize > _LARGEST:
        raise ConfigurationError(
            f"the pattern {shown!r} becomes {made.programsize:,} instructions; {_LARGEST:,} are allowed: use smaller counts"
        )
    if made.fullmatch(b"") is not None:
        raise ConfigurationError(f"the pattern {shown!r} matches the empty text, and so everywhere; ask for a character")
    return LinearPattern(pattern, made)


def _options() -> Any:
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    return options
