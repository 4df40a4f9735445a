"""Units and scales of numbers: the symbols and words of ``units.tsv``, each with its base and its size in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

Unit = tuple[str, float]
"""The base of a unit, and its size in it."""

_UNITS: dict[str, dict[str, Unit]] = {}
"""The units by kind and by form: masses, which a gas may follow, symbols, words, currencies before a number, and scales."""

for _line in Path(__file__).with_name("units.tsv").read_text("utf-8").splitlines():
    if not _line.startswith("#"):
        _kind, _base, _size, _forms = _line.split("\t")
        _UNITS.setdefault(_kind, {}).update(dict.fromkeys(_forms.split("|"), (_base, float(_size))))

SCALES = {
    f"{form.lower()}{s}": size for form, (_, size) in _UNITS["scale"].items() for s in (("", "s") if len(form) > 3 else ("",))
}
"""Words that multiply a number: million, Mrd., 万."""
_WORDS = {word.lower(): unit for word, unit in (_UNITS["mass word"] | _UNITS["word"]).items()}
_GASES = {"CO2e": "t CO2e", "CO2eq": "t CO2e", "CO2-eq": "t CO2e", "CO2-e": "t CO2e", "CO2": "t CO2", "CH4": "t CH4"}
_GASES["N2O"] = "t N2O"


def either(words: Iterable[str]) -> str:
    """Return a pattern of any of these words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


_SUBSCRIPTED = either(_GASES).replace("2", "[2₂]").replace("4", "[4₄]")
_GAS = rf"(?:\s?(?:of\s)?(?P<gas>{_SUBSCRIPTED}|carbon dioxide)(?P<equivalent>[\s-]?(?:equivalents?|eq\b))?)"
_MASS, _MASS_WORD, _SYMBOL, _WORD = (either(_UNITS[kind]) for kind in ("mass", "mass word", "symbol", "word"))
UNIT = re.compile(
    rf"[\s-]?(?:(?P<mass>(?:{_MASS})(?=\s?(?:of\s)?(?:CO|CH|N2O|N₂O)|\b)|(?i:(?:{_MASS_WORD})s?\b)){_GAS}?"
    rf"|(?!(?<=\d)s\b)(?P<symbol>{_SYMBOL})(?![\w₂])|(?i:(?P<word>{_WORD})(?:e?s)?\b))"
)
"""A unit right after a number: ``mass`` with a ``gas``, a ``symbol`` (but no "s" as in "1990s"), or a spelled ``word``."""

CURRENCY_BEFORE = re.compile(rf"(?:{either(_UNITS['before'])})\s?\Z")
"""A currency right before a number."""


def unit_of(match: re.Match[str] | None, before: str = "") -> Unit:
    """Return the base of a unit and the unit's size in it; an empty base if there is no unit."""
    if currency := CURRENCY_BEFORE.search(before):
        return _UNITS["before"][currency[0].strip()]
    if match is None:
        return "", 1.0
    if symbol := match["symbol"]:
        return _UNITS["symbol"][symbol]
    if word := match["word"]:
        return _WORDS[word.lower()]
    mass = match["mass"]
    base, size = _UNITS["mass"].get(mass) or _WORDS[mass.lower().removesuffix("s")]
    if gas := match["gas"]:
        base = "t CO2" if gas == "carbon dioxide" else _GASES[gas.replace("₂", "2").replace("₄", "4")]
        base += "e" if match["equivalent"] and base == "t CO2" else ""
    return base, size
