"""What a site's robots.txt allows, by RFC 9309: no such file allows everything, a server that fails allows nothing.

The rules are read by ``urllib.robotparser``, in an order in which the longest that fits counts; ``*`` inside a path has no
meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.robotparser import RobotFileParser

__all__ = ["LARGEST_ROBOTS", "RobotRules"]

LARGEST_ROBOTS = 512 * 2**10
"""Bytes of a robots.txt; a larger one is refused."""


class RobotRules:
    """Rules of one site.

    Args:
        status: of HTTP, of the answer to the question for the file.
        body: the file, where the status is 200.
    """

    def __init__(self, status: int, body: bytes = b"") -> None:
        self._everything = 400 <= status < 500 and status != 429
        self._parser: RobotFileParser | None = None
        if status == 200:
            parser = RobotFileParser()
            try:
                parser.parse(_ordered(body.decode("utf-8-sig", "replace").splitlines()))
            except ValueError:  # of urllib.parse, about a rule that is no path
                return
            self._parser = parser

    def allow(self, user_agent: str, url: str) -> bool:
        """Whether a page may be fetched.

        Args:
            user_agent: who asks; what stands before its first slash is looked for in the rules.
            url: of the page.
        """
        if self._parser is None:
            return self._everything
        try:
            return self._parser.can_fetch(user_agent, url)
        except ValueError:
            return False


def _ordered(lines: Iterable[str]) -> list[str]:
    """The lines that are read; of each group the longest rule first, and what allows before what forbids."""
    ordered: list[str] = []
    rules: list[tuple[int, bool, str]] = []
    for line in lines:
        key, _, value = line.partition("#")[0].partition(":")
        name, path = key.strip().lower(), value.strip()
        if name in ("allow", "disallow"):
            path = path.rstrip("*")
            rules.append((-len(path), name == "disallow", f"{name}: {path}"))
        elif name == "user-agent":
            ordered += [rule for *_, rule in sorted(rules)]
            rules = []
            ordered.append(f"{name}: {path}")
    return ordered + [rule for *_, rule in sorted(rules)]
