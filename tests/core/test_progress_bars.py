"""Progress in a terminal, in a pipe, and where nobody asked for it; the clock is the test's."""

from __future__ import annotations

import io

import pytest

from nlp_retrieval.core.progress_bars import Display, Mode, clock_time, hidden_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def shown(stream: io.StringIO, mode: Mode, seconds: float, total: int | None = 40, steps: int = 40) -> str:
    clock = Clock()
    with Display(clock, lambda: stream, mode).work("bm25: indexing", total) as advance:
        for _ in range(steps):
            clock.now += seconds / steps
            advance(1)
    return stream.getvalue()


def test_work_of_less_than_two_seconds_is_not_shown() -> None:
    assert shown(Terminal(), "auto", 1.9) == ""


def test_a_terminal_shows_count_rate_and_time_left_and_is_clean_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    *_, last, empty, end = shown(Terminal(), "auto", 8.0).split("\r")

    assert last.rstrip() == "[################] bm25: indexing: 40 of 40, 5.0/s, 0:00 left"
    assert not empty.strip()
    assert end == ""


def test_a_line_is_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert max(len(line) for line in shown(Terminal(), "auto", 60.0).split("\r")) == 29


def test_a_pipe_gets_a_plain_line_every_ten_seconds_from_commands_only() -> None:
    assert shown(io.StringIO(), "auto", 40.0) == ""
    lines = shown(io.StringIO(), "lines", 40.0).splitlines()
    assert lines == [
        "bm25: indexing: 2 of 40, 1.0/s, 0:38 left",
        "bm25: indexing: 12 of 40, 1.0/s, 0:28 left",
        "bm25: indexing: 22 of 40, 1.0/s, 0:18 left",
        "bm25: indexing: 32 of 40, 1.0/s, 0:08 left",
    ]


def test_quiet_and_hidden_progress_show_nothing() -> None:
    assert shown(Terminal(), "off", 40.0) == ""
    with hidden_progress():
        assert shown(Terminal(), "auto", 40.0) == ""


def test_without_a_total_there_is_no_time_left() -> None:
    assert shown(io.StringIO(), "lines", 4.0, total=None).splitlines() == ["bm25: indexing: 20, 10/s"]


def test_work_inside_other_work_shares_the_line() -> None:
    stream, clock = io.StringIO(), Clock()
    display = Display(clock, lambda: stream, "lines")
    with display.work("configurations", 25) as outer:
        clock.now = 1.0
        outer(7)
        with display.work("dense: encoding queries", 1000) as inner:
            clock.now = 11.0
            inner(500)
    assert stream.getvalue() == "7 of 25 configurations | dense: encoding queries: 500 of 1,000, 50/s, 0:10 left\n"


def test_work_that_does_not_advance_is_said_at_once() -> None:
    stream = io.StringIO()
    display = Display(Clock(), lambda: stream, "lines")
    with display.work("writing the page", None, at_once="terminal"), display.work("loading MiniLM", None, at_once="everywhere"):
        pass
    assert stream.getvalue() == "loading MiniLM ...\n"


def test_a_stream_that_fails_does_not_end_the_work() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(text)

    stream = Full()
    display = Display(Clock(), lambda: stream, "lines")
    with display.work("loading", None, at_once="everywhere"):
        pass
    assert display.mode == "off"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (75, "1:15"), (3725, "1:02:05")])
def test_durations(seconds: float, text: str) -> None:
    assert clock_time(seconds) == text
