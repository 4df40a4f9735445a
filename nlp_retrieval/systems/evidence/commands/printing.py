"""Printing of passages: fitted to a terminal, else one line each, without hidden characters or terminal commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from nlp_retrieval.systems.evidence.index.records import EvidencePassage


def console() -> Console:
    """Return a console that does not cut lines unless it is a terminal."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def print_passage(to: Console, before: str, passage: EvidencePassage, text: str) -> None:
    """Print the source of a passage, and below it the text.

    Args:
        to: prints.
        before: begins the first line.
        passage: its title, grade and URL follow.
        text: of the passage, or a part of it.
    """
    from rich.padding import Padding
    from rich.text import Text

    from nlp_retrieval.text import visible

    heading = Text(before)
    if passage.title:
        heading.append(visible(passage.title), "bold cyan")
    heading.append(f"{'  ' if passage.title else ''}{passage.quality}  {visible(passage.url)}", "dim")
    to.print(heading)
    content = Text(" ".join(visible(text).split()))
    to.print(Padding(content, (0, 0, 1, 5)) if to.is_terminal else Text("     ") + content)
