"""Grades of trustworthiness, A to E, by a source's address: by the rules in ``grades.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from nlp_retrieval.core import read_yaml
from nlp_retrieval.errors import InputError, nearest
from nlp_retrieval.systems.evidence.index.urls import canonical_url
from nlp_retrieval.text import registered_name

Grade = Literal["A", "B", "C", "D", "E"]
GRADES: tuple[Grade, ...] = ("A", "B", "C", "D", "E")
"""From the most to the least trustworthy."""


@dataclass(frozen=True)
class QualityRule:
    """A grade, and the conditions that a URL has to meet, each by any one of its values."""

    grade: Grade
    domain: tuple[str, ...]
    suffix: tuple[str, ...]
    host: tuple[str, ...]
    path: tuple[str, ...]

    def fits(self, host: str, path: str) -> bool:
        """Return whether a URL meets all conditions, by its host in lower case and its path without escapes.

        A path is also compared with a slash at its end, which a canonical URL lacks.
        """
        paths = (path, f"{path.rstrip('/')}/")
        return (
            (not self.domain or registered_name(host) in self.domain)
            and (not self.suffix or any(host == end or host.endswith(f".{end}") for end in self.suffix))
            and (not self.host or any(fnmatchcase(host, pattern) for pattern in self.host))
            and (not self.path or any(fnmatchcase(form, pattern) for pattern in self.path for form in paths))
        )


@cache
def quality_rules() -> tuple[QualityRule, ...]:
    """Return the rules, in their order; the file says what they mean."""

    def values(given: str | list[str]) -> tuple[str, ...]:
        return (given,) if isinstance(given, str) else tuple(given)

    rules = read_yaml(Path(__file__).with_name("grades.yaml"))["rules"]
    conditions = ("domain", "suffix", "host", "path")
    return tuple(QualityRule(rule["grade"], *(values(rule.get(name, [])) for name in conditions)) for rule in rules)


def assess_source_quality(url: str) -> Grade:
    """Return the grade of a source by its address alone, "A" (best) to "E"; anything but an address of the web has C."""
    parts = urlsplit(canonical_url(url))
    host, path = parts.hostname or "", unquote(parts.path) or "/"
    return next((rule.grade for rule in quality_rules() if host and rule.fits(host, path)), "C")


def check_grade(grade: object, what: str) -> str:
    """Return a grade after checking it."""
    if not isinstance(grade, str) or grade not in GRADES:
        shown = repr(grade)[:40]
        raise InputError(f"{what} is {shown}, and grades are A (best) to E; {nearest(str(grade)[:40].upper(), GRADES)}")
    return grade


def at_least(minimum: str | None) -> list[str] | None:
    """Return the grades that are no worse than a minimum, or None if there is no minimum."""
    return None if minimum is None else list(GRADES[: GRADES.index(check_grade(minimum, "min_quality")) + 1])
