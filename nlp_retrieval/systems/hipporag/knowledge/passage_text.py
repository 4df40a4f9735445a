"""Identity of a passage for its knowledge: by text, not by id.

Title and content count as one text, and any white space as equal, since files and databases break lines differently.
"""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["passage_hash", "passage_text"]


def passage_text(title: str, content: str) -> str:
    """Return the text of a passage to read: the title, if there is one, on a line of its own, then the content."""
    return f"{title}\n{content}" if title else content


def passage_hash(title: str, content: str) -> str:
    """Return the fingerprint of a passage's text, 32 hexadecimal digits."""
    words = " ".join(passage_text(title, content).split())
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
