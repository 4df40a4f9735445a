"""The page of how quick a project of sources is: ``bench/EVIDENCE_SPEED.md``, one section per script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.writing import page

PAGE = Path(__file__).parent.parent / "EVIDENCE_SPEED.md"

_INTRODUCTION = """# How quick a project of sources is

Sections are written by the scripts that they name, each on its own; one is replaced when its script runs again.
"""


def write_section(path: Path, title: str, text: str, **values: object) -> None:
    """Put a section into a page, in place of the one of this title.

    Args:
        path: of the page; begun where there is none.
        title: the heading.
        text: below it, as for :func:`bench.writing.page`.
        values: by name.
    """
    section = f"## {title}\n\n{page(text, **values)}"
    before = path.read_text("utf-8") if path.exists() else _INTRODUCTION
    found = _section(before, title)
    whole = before[: found.start()] + section + "\n" + before[found.end() :] if found else f"{before}\n{section}"
    path.write_text(whole.rstrip() + "\n", "utf-8")


def write_page(path: Path, text: str, kept: Sequence[str]) -> None:
    """Write a page anew, and keep the sections of other scripts at its end.

    Args:
        path: of the page.
        text: of it.
        kept: titles of these sections, in order.
    """
    before = path.read_text("utf-8") if path.exists() else ""
    sections = [found.group().strip() for title in kept if (found := _section(before, title)) is not None]
    path.write_text("\n\n".join([text.strip(), *sections]) + "\n", "utf-8")


def _section(text: str, title: str) -> re.Match[str] | None:
    return re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)


def milliseconds(seconds: Sequence[float]) -> list[str]:
    """The median and the 95th percentile of times, as cells."""
    return [f"{1000 * float(np.percentile(seconds, share)):,.1f}" for share in (50, 95)]
