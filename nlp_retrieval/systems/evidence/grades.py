"""Grades of trustworthiness, A to E, by a source's address: from the package's list of rules or the user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from nlp_retrieval.core import check_keys, read_yaml
from nlp_retrieval.errors import ConfigurationError, InputError, nearest
from nlp_retrieval.systems.evidence.index.urls import canonical_url
from nlp_retrieval.text import registered_name

Grade = Literal["A", "B", "C", "D", "E"]
GRADES: tuple[Grade, ...] = ("A", "B", "C", "D", "E")
"""From the most to the least trustworthy."""

_CONDITIONS = {
    "domain": (r"[^\s/:@*?\[\]{}\\]{1,200}", "write a name without signs; patterns go under host: or path:"),
    "suffix": (r"[^\s/:@*?\[\]{}\\]{1,200}", "write the end of a host"),
    "host": (r"[^\s/:\[\]]{1,200}", "write a host with * and ? for any characters; what follows its slash is path:"),
    "path": (r"[/*][^\[\]]{0,199}", "begin it with a slash, with * and ? for any characters"),
}
"""Conditions of a rule: the form of their values, and what to write."""

_OWN_RULES = Path(__file__).with_name("grades.yaml")


@dataclass(frozen=True)
class QualityRule:
    """A grade, and the conditions that a URL has to meet, each by any one of its values."""

    grade: Grade
    domain: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    why: str = ""

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


@dataclass(frozen=True)
class QualityRules:
    """Rules in their order."""

    rules: tuple[QualityRule, ...] = field(default_factory=tuple)
    default: Grade = "C"

    @staticmethod
    def read(path: str | Path) -> QualityRules:
        """Read rules from a YAML file; the package's own, ``grades.yaml`` next to this module, describes the format."""
        content = read_yaml(path)
        check_keys(content, ("default", "rules"), ("rules",), str(path))
        rules = content["rules"]
        if not isinstance(rules, list):
            raise ConfigurationError(f"{path}: rules is not a list; write one rule a line, each beginning with a dash")
        return QualityRules(
            tuple(_rule(rule, f"{path}, rule {number}") for number, rule in enumerate(rules, 1)),
            _grade(content.get("default", "C"), f"{path}, default"),
        )

    def grade(self, url: str) -> Grade:
        """Return the grade of a URL."""
        parts = urlsplit(canonical_url(url))
        host = parts.hostname or ""
        if not host:
            return self.default
        path = unquote(parts.path) or "/"
        return next((rule.grade for rule in self.rules if rule.fits(host, path)), self.default)


def assess_source_quality(url: str, rules: QualityRules | str | Path | None = None) -> Grade:
    """Return the grade of a source by its address alone.

    Args:
        url: of the source. Anything but an address of the web (``file://``) has the default grade.
        rules: rules, or the path of a YAML file that holds them; None: those of the package.

    Returns:
        "A" (best) to "E".

    Raises:
        InputError: this is not a URL.
        SourceError: the file of rules cannot be read.
        ConfigurationError: its rules are invalid.
        DependencyError: tldextract is not installed.
    """
    if rules is None:
        rules = _own_rules()
    elif not isinstance(rules, QualityRules):
        rules = QualityRules.read(rules)
    return rules.grade(url)


@cache
def _own_rules() -> QualityRules:
    return QualityRules.read(_OWN_RULES)


def _rule(rule: object, where: str) -> QualityRule:
    if not isinstance(rule, Mapping):
        raise ConfigurationError(f"{where}: not a mapping; write grade: and one of {', '.join(_CONDITIONS)}")
    fields: dict[str, Any] = dict(rule)
    check_keys(fields, ("grade", *_CONDITIONS, "why"), ("grade",), where)
    conditions = {}
    for name in (name for name in _CONDITIONS if name in fields):
        values = fields[name] if isinstance(fields[name], list) else [fields[name]]
        conditions[name] = tuple(_pattern(value, name, f"{where}, {name}") for value in values)
    if not any(conditions.values()):
        raise ConfigurationError(f"{where}: no condition, so it would match every URL; use default: instead")
    return QualityRule(_grade(fields["grade"], f"{where}, grade"), why=str(fields.get("why", "")), **conditions)


def _grade(value: object, where: str) -> Grade:
    for grade in GRADES:
        if value == grade:
            return grade
    raise ConfigurationError(f"{where}: {str(value)[:40]!r} is not a grade; grades are A, B, C, D and E")


def _pattern(value: object, name: str, where: str) -> str:
    text, (form, cure) = str(value), _CONDITIONS[name]
    if not isinstance(value, str) or not re.fullmatch(form, text.strip(".")):
        raise ConfigurationError(f"{where}: {text[:80]!r} fits no URL; {cure}")
    if name == "path":
        return text
    text = text.lower() if name == "host" else text.lower().strip(".")
    if name == "domain" and registered_name(text) != text:
        raise ConfigurationError(f"{where}: {text!r} is not a registered name, so no URL has it; write it as suffix: or host:")
    return text


def check_grade(grade: object, what: str) -> str:
    """Return a grade after checking it."""
    if not isinstance(grade, str) or grade not in GRADES:
        shown = repr(grade)[:40]
        raise InputError(f"{what} is {shown}, and grades are A (best) to E; {nearest(str(grade)[:40].upper(), GRADES)}")
    return grade


def at_least(minimum: str | None) -> list[str] | None:
    """Return the grades that are no worse than a minimum, or None if there is no minimum."""
    return None if minimum is None else list(GRADES[: GRADES.index(check_grade(minimum, "min_quality")) + 1])
