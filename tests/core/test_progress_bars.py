"""Progress in a terminal, in a pipe, and where nobody asked for it."""

from __future__ import annotations

import io
import sys

import pytest

from nlp_retrieval.core import progress_bars
from nlp_retrieval.core.progress_bars import Display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch):
    """Returns what work writes to a stream, with everything shown from the start."""
    for name in ("_AFTER", "_REDRAWN", "_REPORTED"):
        monkeypatch.setattr(progress_bars, name, 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")

    def shown(stream: io.StringIO, mode: str, total: int | None = 3) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        display = Display()
        display.mode = mode
        with display.work("bm25: indexing", total) as advance:
            for _ in range(3):
                advance(1)
        return stream.getvalue()

    return shown


def test_a_terminal_shows_name_and_count(shown) -> None:
    text = shown(Terminal(), "auto")
    assert "bm25: indexing" in text
    assert "2/3" in text


def test_a_pipe_gets_plain_lines_from_commands_only(shown) -> None:
    assert shown(io.StringIO(), "auto") == ""
    assert shown(io.StringIO(), "lines").splitlines() == [f"bm25: indexing: {done} of 3" for done in (1, 2, 3)]
    assert shown(io.StringIO(), "lines", None).splitlines()[-1] == "bm25: indexing: 3"


def test_quiet_progress_and_short_work_show_nothing(shown, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), "off") == ""
    monkeypatch.setattr(progress_bars, "_AFTER", 100.0)
    assert "indexing" not in shown(Terminal(), "auto")
