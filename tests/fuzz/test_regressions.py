"""Every input that a parser once went wrong on, and each parser on inputs like its seeds, damaged at random.

A case is a file under ``cases/<target>``; what it showed stands in its name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soaking import mostly_soaked

from .seeds import seeds_of
from .targets import TARGETS, feed

_EXAMPLES = 20
CASES = Path(__file__).parent / "cases"

PIECES = [
    b"", b"[", b"]", b"{", b"}", b'"', b"\\", b"\\ud800", b"1e999", b"NaN", b"null", b"true", b"-1", b"0.5", b"9" * 20,
    b"9" * 700, b"\x00", b"\xff", b"\r", b"\n", b"\t", b" ", b",", b":", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"[" * 3000,
    b'{"a":' * 3000, b'"a"', b"[]", b"{}", b'"id"', b"&a ", b"*a", b"!!int ", b"<<: ",
]  # fmt: skip

BOMBS = [b"[" * 60_000, b'{"a":' * 20_000, b"a: [" * 20_000, b"9" * 60_000, b'"' * 60_001]


@st.composite
def damaged(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """A seed with up to four pieces put in, or in place of others."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        begin = draw(st.integers(0, len(data)))
        end = begin + draw(st.sampled_from([0, 0, 1, 2, 8, 64, len(data)]))
        data = data[:begin] + draw(st.sampled_from(PIECES) | st.binary(max_size=6)) + data[end:]
    return data


def test_a_seed_is_taken(subtests: pytest.Subtests) -> None:
    for target in TARGETS:
        with subtests.test(target=target):
            assert [seed for seed in seeds_of(target) if not feed(target, seed)] == []


def test_what_once_went_wrong_does_not(subtests: pytest.Subtests) -> None:
    for case in sorted(CASES.glob("*/*")):
        with subtests.test(case=f"{case.parent.name}/{case.name}"):
            feed(case.parent.name, case.read_bytes())


@settings(max_examples=3 * len(TARGETS))
@given(st.data())
def test_a_damaged_input_is_refused_by_an_error_of_the_project_or_taken(data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(sorted(TARGETS)))
    feed(target, data.draw(damaged(seeds_of(target))))


def check_damaged(parse: Callable[[bytes], object], seeds: list[bytes], effort: int) -> None:
    """Feed a parser with its seeds, damaged at random."""

    @settings(max_examples=_EXAMPLES * effort)
    @given(damaged(seeds))
    def try_one(data: bytes) -> None:
        parse(data)

    try_one()


@pytest.mark.soak
@pytest.mark.parametrize("target", TARGETS)
def test_many_damaged_inputs_are_refused_by_an_error_of_the_project_or_taken(target: str, effort: int) -> None:
    check_damaged(partial(feed, target), seeds_of(target), effort)


@pytest.mark.parametrize("bomb", mostly_soaked(BOMBS, 2), ids=lambda bomb: bomb[:5].decode())
def test_a_bomb_does_not_go_off(bomb: bytes, subtests: pytest.Subtests) -> None:
    for target in TARGETS:
        with subtests.test(target=target):
            feed(target, bomb)
