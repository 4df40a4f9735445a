"""Grades of trustworthiness, A to E, by a source's address: by the rules in ``grades.yaml``."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from nlp_retrieval.core import read_yaml
from nlp_retrieval.errors import InputError, nearest
from nlp_retrieval.systems.evidence.index.urls import canonical_url
from nlp_retrieval.text import registered_name

Grade = Literal["A", "B", "C", "D", "E"]
GRADES: tuple[Grade, ...] = ("A", "B", "C", "D", "E")
"""From the most to the least trustworthy."""


@cache
def quality_rules() -> list[dict[str, Any]]:
    """Return the rules, in their order; the file says what they mean."""
    rules: list[dict[str, Any]] = read_yaml(Path(__file__).with_name("grades.yaml"))["rules"]
    return rules


def assess_source_quality(url: str) -> Grade:
    """Return the grade of a source by its address alone, "A" (best) to "E"; anything but an address of the web has C."""
    parts = urlsplit(canonical_url(url))
    host, path = parts.hostname or "", unquote(parts.path) or "/"
    if not host:
        return "C"
    domain = registered_name(host)
    paths = (path, f"{path.rstrip('/')}/")  # a canonical URL lacks the slash at its end
    meets: dict[str, Callable[[str], bool]] = {
        "domain": lambda name: name == domain,
        "suffix": lambda end: f".{host}".endswith(f".{end}"),
        "host": lambda pattern: fnmatchcase(host, pattern),
        "path": lambda pattern: any(fnmatchcase(form, pattern) for form in paths),
    }
    for rule in quality_rules():
        values = {name: [rule[name]] if isinstance(rule[name], str) else rule[name] for name in meets if name in rule}
        if all(any(map(meets[name], given)) for name, given in values.items()):
            grade: Grade = rule["grade"]
            return grade
    return "C"


def check_grade(grade: object, what: str) -> str:
    """Return a grade after checking it."""
    if not isinstance(grade, str) or grade not in GRADES:
        shown = repr(grade)[:40]
        raise InputError(f"{what} is {shown}, and grades are A (best) to E; {nearest(str(grade)[:40].upper(), GRADES)}")
    return grade


def at_least(minimum: str | None) -> list[str] | None:
    """Return the grades that are no worse than a minimum, or None if there is no minimum."""
    return None if minimum is None else list(GRADES[: GRADES.index(check_grade(minimum, "min_quality")) + 1])
