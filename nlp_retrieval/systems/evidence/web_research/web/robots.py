"""Rules of a site's robots.txt, by RFC 9309: a missing file allows everything, a failing server allows nothing.

All groups for the user agent count as one; without any, those for ``*``. The longest matching rule decides, and of two equally
long ones the one that allows. ``*`` in a path matches anything, and ``$`` at its end the end. Rules are not compiled to regular
expressions, so that a site cannot make matching slow with many stars.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes, urlsplit

__all__ = ["LARGEST_ROBOTS", "RobotRules"]

LARGEST_ROBOTS = 512 * 2**10
"""Bytes of a robots.txt; a larger one is refused."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A path as written, split at its stars and percent-decoded."""

    allows: bool
    parts: list[bytes]
    ends: bool

    @property
    def length(self) -> int:
        return sum(map(len, self.parts)) + len(self.parts) - 1 + self.ends

    def fits(self, path: bytes) -> bool:
        first, *middle = self.parts
        if not middle:
            return path == first if self.ends else path.startswith(first)
        last, place = middle.pop(), len(first)
        if not path.startswith(first):
            return False
        for part in middle:  # the first occurrence leaves the most room for the others
            found = path.find(part, place)
            if found < 0:
                return False
            place = found + len(part)
        return path.endswith(last) and len(path) - len(last) >= place if self.ends else path.find(last, place) >= 0


@dataclass(frozen=True, slots=True)
class _Group:
    agents: set[str] = field(default_factory=set)
    rules: list[_Rule] = field(default_factory=list)


class RobotRules:
    """Rules of one site.

    Args:
        status: of HTTP, of the request for the file.
        body: the file, if the status is 200.
    """

    def __init__(self, status: int, body: bytes = b"") -> None:
        self._readable = status == 200 or (400 <= status < 500 and status != 429)
        self._groups = _groups(body) if status == 200 else []

    def allow(self, user_agent: str, url: str) -> bool:
        """Return whether a page may be fetched.

        Args:
            user_agent: of the request; the part before its first slash is looked up in the rules.
            url: of the page.
        """
        if not self._readable:
            return False
        try:
            parts = urlsplit(url)
            path = unquote_to_bytes((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        except ValueError:
            return False
        asking = _name(user_agent)
        groups = [group for group in self._groups if asking in group.agents]
        groups = groups or [group for group in self._groups if "*" in group.agents]
        fitting = [(rule.length, rule.allows) for group in groups for rule in group.rules if rule.fits(path)]
        return max(fitting, default=(0, True))[1]


def _groups(body: bytes) -> list[_Group]:
    groups: list[_Group] = []
    begun = False
    for line in body.removeprefix(codecs.BOM_UTF8).splitlines():
        key, _, value = line.partition(b"#")[0].partition(b":")
        name, value = key.strip().lower(), value.strip()
        if name == b"user-agent":
            if not begun:
                groups.append(_Group())
            groups[-1].agents.add(_name(value.decode("utf-8", "replace")))
            begun = True
        elif name in (b"allow", b"disallow") and groups:
            begun = False
            if value.startswith((b"/", b"*")):
                parts = [unquote_to_bytes(part) for part in value.removesuffix(b"$").split(b"*")]
                groups[-1].rules.append(_Rule(name == b"allow", parts, value.endswith(b"$")))
    return groups


def _name(user_agent: str) -> str:
    return user_agent.partition("/")[0].strip().lower()
