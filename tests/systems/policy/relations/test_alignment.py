"""What one version carries over into the next, against counting by hand."""

from __future__ import annotations

import random

import pytest

from nlp_retrieval.systems.policy.hop.versions import aligned


def shares_by_hand(ones: list[str], others: list[str]) -> list[float]:
    """The share of each text's words that stand in no run of four that the other texts have."""
    runs = {tuple(text.split()[first : first + 4]) for text in others for first in range(max(1, len(text.split()) - 3))}
    shares = []
    for text in ones:
        words = text.split()
        size = min(4, len(words))
        carried = {
            place
            for first in range(len(words) - size + 1 if words else 0)
            if tuple(words[first : first + size]) in runs
            for place in range(first, first + size)
        }
        shares.append(1 - len(carried) / len(words) if words else 0.0)
    return shares


@pytest.mark.parametrize("seed", range(8))
def test_what_is_new_and_gone_is_what_counting_finds(seed: int) -> None:
    draw = random.Random(seed)
    parts = [" ".join(draw.choices("abcdefgh", k=draw.randint(0, 9))) for _ in range(12)]
    earlier, later = ([" ".join(draw.choices(parts, k=2)).strip() for _ in range(draw.randint(1, 7))] for _ in range(2))
    found = aligned(earlier, later, 0.25)
    assert found.new.tolist() == pytest.approx(shares_by_hand(later, earlier))
    assert found.gone.tolist() == pytest.approx(shares_by_hand(earlier, later))


def test_counterparts_are_the_passages_with_most_words_in_common_and_show_the_longest_run() -> None:
    earlier = ["one two three four five six seven", "red green blue white black", "nothing of this is left at all"]
    later = ["Red, green, blue, white ... and grey", "zero one two three four five nine", "entirely other things are said here"]
    first, second = aligned(earlier, later, 0.25).counterparts
    assert (first.later, first.earlier, second.later, second.earlier) == (0, 1, 1, 0)
    assert second.carried == pytest.approx(2 * 5 / 14)
    assert later[1][slice(*second.later_span)] == earlier[0][slice(*second.earlier_span)] == "one two three four five"
    assert aligned(earlier, later, 0.95).counterparts == []


def test_a_passage_that_was_split_or_joined_keeps_a_counterpart_and_is_not_new() -> None:
    one, other = "alpha beta gamma delta epsilon", "iota kappa lambda mu nu xi"
    split, joined = aligned([f"{one} {other}"], [one, other], 0.25), aligned([one, other], [f"{one} {other}"], 0.25)
    assert [(pair.later, pair.earlier) for pair in split.counterparts] == [(0, 0), (1, 0)]
    assert [(pair.later, pair.earlier) for pair in joined.counterparts] == [(0, 0), (0, 1)]
    assert split.new.tolist() == [0, 0]
    assert joined.new.tolist() == [0]


def test_short_and_empty_passages_are_compared_whole() -> None:
    found = aligned(["Annex A", ""], ["annex a", "annex b", ""], 0.25)
    assert found.new.tolist() == [0, 1, 0]
    assert [(pair.later, pair.earlier, pair.carried) for pair in found.counterparts] == [(0, 0, 1.0)]
