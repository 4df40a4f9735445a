"""All limits of reading sources.

A source may come from anyone. One that exceeds a limit is refused with a message that names the limit, and never cut.
"""

from __future__ import annotations

__all__ = [
    "CHILD_MEMORY",
    "CHILD_SECONDS",
    "LARGEST_FILE",
    "LARGEST_MARKUP",
    "LARGEST_TEXT",
    "LONGEST_TITLE",
    "LONGEST_URL",
    "MOST_PAGES",
    "READ_HERE",
]

LARGEST_FILE = 50 * 2**20
"""Bytes of a plain text or a PDF."""

LARGEST_MARKUP = 10 * 2**20
"""Bytes of a page of HTML or Markdown: the time to find its main text is quadratic in its size."""

LARGEST_TEXT = 20 * 2**20
"""Characters of text of one source."""

READ_HERE = {"html": 2**18, "markdown": 2**15}
"""Bytes of a page that this process reads itself, since even a malicious one takes only seconds. A larger one is read in a
child process, which can be stopped."""

CHILD_SECONDS = 60.0
"""Seconds that a child process may read one source."""

CHILD_MEMORY = 2 * 2**30
"""Bytes of address space that a child process may use."""

MOST_PAGES = 5000
"""Pages of a PDF."""

LONGEST_TITLE = 300
"""Characters of a title; a longer one is cut at a word."""

LONGEST_URL = 2048
"""Characters of a URL."""
