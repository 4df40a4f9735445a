"""Units of measure, spelled and abbreviated, and their size in a base unit: "Mt CO2e" is a million "t CO2e".

Units of different bases are never compared: tonnes of carbon dioxide are not tonnes of CO2 equivalent, dollars are not euros,
and per cent are not percentage points.
"""

from __future__ import annotations

import re

__all__ = ["CURRENCY_BEFORE", "UNIT", "unit_of"]

_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SPELLED_PREFIXES = {"": 1.0, "kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12, "peta": 1e15, "exa": 1e18}


def _scaled(base: str, symbol: str, spelled: str, prefixes: str, factor: float = 1.0) -> dict[str, tuple[str, float]]:
    """The unit with each prefix, as a symbol and as a word."""
    units = {prefix + symbol: (base, factor * _PREFIXES[prefix]) for prefix in ["", *prefixes]}
    if spelled:
        wanted = {_PREFIXES[prefix] for prefix in ["", *prefixes]}
        units |= {f"{word}{spelled}": (base, factor * size) for word, size in _SPELLED_PREFIXES.items() if size in wanted}
    return units


_GASES = {
    "CO2e": "t CO2e",
    "CO2eq": "t CO2e",
    "CO2-eq": "t CO2e",
    "CO2-e": "t CO2e",
    "CO2": "t CO2",
    "CH4": "t CH4",
    "N2O": "t N2O",
}
_TONNES: dict[str, float] = {"t": 1.0, "kt": 1e3, "Mt": 1e6, "Gt": 1e9, "Gg": 1e3, "Tg": 1e6, "Pg": 1e9, "MMT": 1e6, "MMt": 1e6}
_SPELLED_TONNES: dict[str, float] = {
    "tonne": 1.0, "ton": 1.0, "metric ton": 1.0, "metric tonne": 1.0, "kilotonne": 1e3, "kiloton": 1e3, "megatonne": 1e6,
    "megaton": 1e6, "gigatonne": 1e9, "gigaton": 1e9, "gigagram": 1e3, "teragram": 1e6,
}  # fmt: skip

_EXACT: dict[str, tuple[str, float]] = {"%": ("%", 1.0), "pp": ("points", 1.0), "°C": ("°C", 1.0), "ha": ("ha", 1.0)}
_EXACT |= {symbol: ("t", size) for symbol, size in _TONNES.items()}
_EXACT |= {"kg": ("t", 1e-3), "g": ("t", 1e-6), "mg": ("t", 1e-9), "µg": ("t", 1e-12), "μg": ("t", 1e-12)}
_EXACT |= _scaled("W", "W", "", "kMGT") | _scaled("W", "Wp", "", "kMG") | _scaled("W", "We", "", "MG")
_EXACT |= _scaled("Wh", "Wh", "", "kMGTP") | _scaled("Wh", "J", "", "kMGTPE", 1 / 3600)
_EXACT |= {"toe": ("Wh", 11.63e6), "ktoe": ("Wh", 11.63e9), "Mtoe": ("Wh", 11.63e12)}
_EXACT |= {"km": ("m", 1e3), "cm": ("m", 1e-2), "mm": ("m", 1e-3), "km2": ("ha", 100.0), "km²": ("ha", 100.0)}
_EXACT |= {
    "m2": ("ha", 1e-4),
    "m²": ("ha", 1e-4),
    "ft": ("m", 0.3048),
    "sq ft": ("ha", 0.09290304e-4),
    "m3": ("m3", 1.0),
    "m³": ("m3", 1.0),
    "ml": ("m3", 1e-6),
    "mmHg": ("mmHg", 1.0),
}
_EXACT |= {"°F": ("°F", 1.0), "km/h": ("m/h", 1e3), "kph": ("m/h", 1e3), "mph": ("m/h", 1609.344), "oz": ("t", 28.349523125e-6)}
_EXACT |= {"lb": ("t", 0.45359237e-3), "lbs": ("t", 0.45359237e-3)}
_EXACT |= {code: (code, 1.0) for code in "USD EUR GBP JPY CNY INR RMB ZAR BRL AUD CAD CHF KRW MXN IDR NGN KES ETB".split()}
_EXACT |= {
    "RMB": ("CNY", 1.0),
    "€": ("EUR", 1.0),
    "£": ("GBP", 1.0),
    "zł": ("PLN", 1.0),
    "₽": ("RUB", 1.0),
    "руб": ("RUB", 1.0),
}
_EXACT |= {"$": ("USD", 1.0), "¥": ("JPY", 1.0), "₩": ("KRW", 1.0), "₹": ("INR", 1.0), "℃": ("°C", 1.0), "℉": ("°F", 1.0)}
_EXACT |= {"m": ("m", 1.0), "µm": ("m", 1e-6), "μm": ("m", 1e-6), "nm": ("m", 1e-9), "p.p.": ("points", 1.0)}
_EXACT |= {"bp": ("points", 0.01), "bps": ("points", 0.01), "%p": ("points", 1.0), "г": ("t", 1e-6), "кг": ("t", 1e-3)}
_EXACT |= {"км": ("m", 1e3), "м": ("m", 1.0), "см": ("m", 1e-2), "mi": ("m", 1609.344), "yd": ("m", 0.9144), "L": ("m3", 1e-3)}
_EXACT |= {"l": ("m3", 1e-3), "mL": ("m3", 1e-6), "h": ("day", 1 / 24), "hr": ("day", 1 / 24), "hrs": ("day", 1 / 24)}
_EXACT |= {"min": ("day", 1 / 1440), "sec": ("day", 1 / 86400), "ms": ("day", 1 / 86_400_000)}
_EXACT |= _scaled("B", "B", "", "kMGTP") | _scaled("Hz", "Hz", "", "kMGT") | _scaled("V", "V", "", "kM")
del _EXACT["B"]

_SPELLED: dict[str, tuple[str, float]] = {
    "percent": ("%", 1.0), "per cent": ("%", 1.0), "percentage point": ("points", 1.0), "degree Celsius": ("°C", 1.0),
    "degrees Celsius": ("°C", 1.0), "hectare": ("ha", 1.0), "square kilometre": ("ha", 100.0),
    "square kilometer": ("ha", 100.0),
    "sq km": ("ha", 100.0), "kilometre": ("m", 1e3), "kilometer": ("m", 1e3), "metre": ("m", 1.0), "meter": ("m", 1.0),
    "centimetre": ("m", 1e-2), "centimeter": ("m", 1e-2), "millimetre": ("m", 1e-3), "millimeter": ("m", 1e-3),
    "square mile": ("ha", 258.9988110336), "mile": ("m", 1609.344), "foot": ("m", 0.3048), "feet": ("m", 0.3048),
    "yard": ("m", 0.9144), "inch": ("m", 0.0254), "acre": ("ha", 0.40468564224), "degree Fahrenheit": ("°F", 1.0),
    "degrees Fahrenheit": ("°F", 1.0), "kilogram": ("t", 1e-3), "milligram": ("t", 1e-9), "gram": ("t", 1e-6),
    "cubic metre": ("m3", 1.0), "cubic meter": ("m3", 1.0), "litre": ("m3", 1e-3), "liter": ("m3", 1e-3),
    "US dollar": ("USD", 1.0), "U.S. dollar": ("USD", 1.0), "dollar": ("USD", 1.0), "euro": ("EUR", 1.0),
    "pound sterling": ("GBP", 1.0), "yuan": ("CNY", 1.0), "rupee": ("INR", 1.0), "yen": ("JPY", 1.0),
    "year": ("year", 1.0), "month": ("year", 1 / 12), "day": ("day", 1.0), "week": ("day", 7.0), "hour": ("day", 1 / 24),
    "minute": ("day", 1 / 1440),
    "people": ("people", 1.0), "person": ("people", 1.0), "household": ("household", 1.0), "job": ("job", 1.0),
    "vehicle": ("vehicle", 1.0), "tree": ("tree", 1.0), "participant": ("people", 1.0), "patient": ("people", 1.0),
}  # fmt: skip
_SPELLED |= {
    "Prozentpunkt": ("points", 1.0), "Prozentpunkten": ("points", 1.0), "percent point": ("points", 1.0),
    "%-Punkt": ("points", 1.0), "%-Punkten": ("points", 1.0), "% point": ("points", 1.0), "basis point": ("points", 0.01),
    "point de pourcentage": ("points", 1.0), "points de pourcentage": ("points", 1.0), "punto porcentual": ("points", 1.0),
    "puntos porcentuales": ("points", 1.0), "punti percentuali": ("points", 1.0), "punto percentuale": ("points", 1.0),
    "pontos percentuais": ("points", 1.0), "ponto percentual": ("points", 1.0), "punktów procentowych": ("points", 1.0),
    "punkty procentowe": ("points", 1.0), "процентных пункта": ("points", 1.0), "процентных пунктов": ("points", 1.0),
    "dólar": ("USD", 1.0), "dólares": ("USD", 1.0), "dollari": ("USD", 1.0), "доллар": ("USD", 1.0), "доллара": ("USD", 1.0),
    "долларов": ("USD", 1.0), "евро": ("EUR", 1.0), "рубль": ("RUB", 1.0), "рубля": ("RUB", 1.0), "рублей": ("RUB", 1.0),
    "złotych": ("PLN", 1.0), "chilometri": ("m", 1e3), "kilomètre": ("m", 1e3), "kilómetro": ("m", 1e3),
    "quilómetro": ("m", 1e3), "quilômetro": ("m", 1e3), "kilometrów": ("m", 1e3), "километров": ("m", 1e3),
    "километра": ("m", 1e3), "mètre": ("m", 1.0), "metro": ("m", 1.0), "метров": ("m", 1.0), "Tonnen": ("t", 1.0),
    "Hektar": ("ha", 1.0), "second": ("day", 1 / 86400),
}  # fmt: skip
_SPELLED |= {word: ("t", size) for word, size in _SPELLED_TONNES.items()}
_SPELLED |= {word: unit for word, unit in _scaled("W", "", "watt", "kMGT").items() if word.endswith("watt")}
_SPELLED |= {word: unit for word, unit in _scaled("Wh", "", "watt-hour", "kMGTP").items() if word.endswith("watt-hour")}
_SPELLED |= {word.replace("-", " "): unit for word, unit in _SPELLED.items() if word.endswith("watt-hour")}

_BY_LOWER = {word.lower(): unit for word, unit in _SPELLED.items()}
_SYMBOLS_BEFORE = {"US$": "USD", "USD": "USD", "$": "USD", "EUR": "EUR", "€": "EUR", "£": "GBP", "GBP": "GBP", "¥": "JPY"}
_SYMBOLS_BEFORE |= {"A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "R$": "BRL", "₹": "INR", "INR": "INR", "CNY": "CNY"}
_SYMBOLS_BEFORE |= {"RMB": "CNY", "ZAR": "ZAR", "JPY": "JPY", "AUD": "AUD", "CAD": "CAD", "CHF": "CHF", "Fr.": "CHF"}
_SYMBOLS_BEFORE |= {"Rs": "INR", "Rs.": "INR", "₩": "KRW", "₽": "RUB", "₺": "TRY", "HK$": "HKD", "NT$": "TWD", "S$": "SGD"}
_SYMBOLS_BEFORE |= {"SEK": "SEK", "NOK": "NOK", "DKK": "DKK", "PLN": "PLN", "RUB": "RUB", "KRW": "KRW", "元": "CNY", "฿": "THB"}
_TOGETHER = {
    "美元": ("USD", 1.0), "欧元": ("EUR", 1.0), "歐元": ("EUR", 1.0), "日元": ("JPY", 1.0), "円": ("JPY", 1.0), "元": ("CNY", 1.0),  # noqa: E501
    "ドル": ("USD", 1.0), "ユーロ": ("EUR", 1.0), "원": ("KRW", 1.0), "달러": ("USD", 1.0), "유로": ("EUR", 1.0),
    "人": ("people", 1.0), "명": ("people", 1.0), "公里": ("m", 1e3), "キロメートル": ("m", 1e3), "킬로미터": ("m", 1e3),
    "个百分点": ("points", 1.0), "個百分點": ("points", 1.0), "ポイント": ("points", 1.0), "रुपये": ("INR", 1.0), "บาท": ("THB", 1.0),  # noqa: E501
}  # fmt: skip
"""Units of scripts that write them right after a number without a space behind."""


def _either(words: object) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))  # type: ignore[call-overload]


_SUBSCRIPTED = {gas.replace("2", "[2₂]").replace("4", "[4₄]") for gas in _GASES}
_GAS = (
    rf"(?:\s?(?:of\s)?(?P<gas>{'|'.join(sorted(_SUBSCRIPTED, key=lambda gas: (-len(gas), gas)))}|carbon dioxide)"
    r"(?P<equivalent>[\s-]?(?:equivalents?|eq\b))?)"
)
UNIT = re.compile(
    rf"[\s-]?(?:(?P<mass>(?:{_either(_TONNES)})(?=\s?(?:of\s)?(?:CO|CH|N2O|N₂O)|\b)|(?i:(?:{_either(_SPELLED_TONNES)})s?\b)){_GAS}?"
    rf"|(?P<symbol>{_either(_EXACT)})(?![\w₂])|(?i:(?P<word>{_either(_SPELLED)})(?:e?s)?\b)|(?P<together>{_either(_TOGETHER)}))"
)
"""A unit right after a number: ``mass`` with a ``gas``, a ``symbol``, a spelled ``word``, or one written ``together`` with it."""  # noqa: E501

CURRENCY_BEFORE = re.compile(rf"(?:{_either(_SYMBOLS_BEFORE)})\s?\Z")
"""A currency right before a number."""


def unit_of(match: re.Match[str] | None, before: str = "") -> tuple[str, float]:
    """Return the base of a unit and the unit's size in it; an empty base if there is no unit.

    Args:
        match: of :data:`UNIT` right after the number.
        before: the few characters before the number; a currency may end there.
    """
    if currency := CURRENCY_BEFORE.search(before):
        return _SYMBOLS_BEFORE[currency[0].strip()], 1.0
    if match is None:
        return "", 1.0
    if mass := match["mass"]:
        size = _TONNES.get(mass) or _SPELLED_TONNES[re.sub(r"s\Z", "", mass.lower())]
        return _with_gas(match), size
    if symbol := match["symbol"]:
        return _EXACT[symbol]
    if together := match["together"]:
        return _TOGETHER[together]
    return _BY_LOWER[match["word"].lower()]


def _with_gas(match: re.Match[str]) -> str:
    gas = match["gas"]
    if gas is None:
        return "t"
    base = "t CO2" if gas == "carbon dioxide" else _GASES[gas.replace("₂", "2").replace("₄", "4")]
    return f"{base}e" if match["equivalent"] and base == "t CO2" else base
