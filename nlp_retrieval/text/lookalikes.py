"""Cyrillic and Greek letters that look like Latin ones, so that no word can be hidden from a program by them.

Source: the letters of the Latin, Cyrillic and Greek scripts in Unicode Technical Standard 39, confusables.
"""

from __future__ import annotations

__all__ = ["as_latin"]

_PAIRS = (
    "\u0430a \u0432b \u0435e \u043ak \u043cm \u043dh \u043eo \u0440p \u0441c \u0442t \u0443y \u0445x \u0456i \u0458j "
    "\u0455s \u0501d \u04bbh \u051bq \u051dw \u0410A \u0412B \u0415E \u041aK \u041cM \u041dH \u041eO \u0420P \u0421C "
    "\u0422T \u0423Y \u0425X \u0406I \u0408J \u0405S \u050cG \u03b1a \u03b2b \u03b5e \u03b9i \u03bak \u03bdv \u03bfo "
    "\u03c1p \u03c4t \u03c5u \u03c7x \u0391A \u0392B \u0395E \u0396Z \u0397H \u0399I \u039aK \u039cM \u039dN \u039fO "
    "\u03a1P \u03a4T \u03a5Y \u03a7X"
).split()
_LATIN = {ord(pair[0]): pair[1] for pair in _PAIRS}


def as_latin(text: str) -> str:
    """Return a text of the same length with each of these letters as the Latin one; for comparing, not for showing.

    Args:
        text: in any script.
    """
    return text if text.isascii() else text.translate(_LATIN)
