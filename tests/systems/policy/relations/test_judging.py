"""Relations that texts show, and traps in which they seem to."""

from __future__ import annotations

import pytest

from nlp_retrieval.systems.policy.hop.judging import Passage, confidence_of, relations_between, statements_of, terms_of
from nlp_retrieval.systems.policy.hop.relation import Relation

SOLAR = "Solar power capacity shall reach 30 GW by 2030."


def between(one: str, other: str, subject: str | None = "Alder") -> list[Relation]:
    about = None if subject is None else terms_of(subject)
    return relations_between(Passage(1, statements_of(one)), Passage(0, statements_of(other)), 0.9, 0.5, about)


def kinds(one: str, other: str, subject: str | None = "Alder") -> set[tuple[int, str, int]]:
    return {(found.source, found.type, found.target) for found in between(one, other, subject)}


@pytest.mark.parametrize(
    "other",
    [
        "By 2030, solar power capacity will reach 45 GW.",
        "Alder plans a total solar power capacity of 20,000 MW by 2030.",
    ],
)
def test_another_value_of_the_same_measure_of_the_same_thing_contradicts(other: str) -> None:
    (found,) = between(SOLAR, other)
    assert (found.type, SOLAR[slice(*found.source_span)], other[slice(*found.target_span)]) == ("CONTRADICTS", SOLAR, other)
    assert not {kind for _, kind, _ in kinds(SOLAR, other, None)} & {"CONTRADICTS"}, "of another subject it contradicts nothing"


@pytest.mark.parametrize(
    "other",
    [
        "Wind power capacity shall reach 45 GW by 2030.",  # another thing
        "Solar power capacity shall reach 45 GW by 2035.",  # another year
        "Solar power capacity shall reach 45 TWh by 2030.",  # another unit
        "Solar power capacity shall reach 30,000 MW by 2030.",  # the same value
        "Solar power capacity shall reach at least 25 GW by 2030.",  # a bound
        "Emissions fall by 2030.",  # only the year in common
        "Rooftop solar power capacity shall reach 5 GW by 2030.",  # a part of it
        "Solar power capacity shall not reach 45 GW by 2030.",  # denied
    ],
)
def test_what_is_another_matter_contradicts_nothing(other: str) -> None:
    assert "CONTRADICTS" not in {kind for _, kind, _ in kinds(SOLAR, other)}


def test_a_revised_baseline_or_another_gas_contradicts_nothing() -> None:
    one = "Transport emissions fall by 20% below 2010 levels by 2030. Industry emits 40 Mt CO2e a year."
    other = "Transport emissions fall by 30% below 2005 levels by 2030. Industry emits 30 Mt CO2 a year."
    assert kinds(one, other) == set()


def test_namesakes_contradict_nothing() -> None:
    one = "The dam at Lake Orrin has a capacity of 300 MW."
    assert kinds(one, "The dam at Lake Tessel has a capacity of 200 MW.") == set()
    assert {kind for _, kind, _ in kinds(one, "The dam at Lake Orrin has a capacity of 200 MW.")} == {"CONTRADICTS"}


def test_the_same_said_again_supports_unless_a_figure_or_a_denial_differs() -> None:
    one = "Farmers receive free advice on drought resistant seeds in 12 regional offices with 40 % women."
    assert {kind for _, kind, _ in kinds(one, f"As before: {one}", None)} == {"SUPPORTS"}
    assert kinds(one, one.replace("40 %", "50 %"), None) == set()
    assert kinds(one, one.replace("receive", "never receive"), None) == set()


def test_causes_point_from_the_cause_to_the_effect_in_either_wording() -> None:
    effect = "Flooding of coastal villages and salt in drinking wells became frequent."
    forward = "Rising sea levels lead to flooding of coastal villages and salt in the drinking wells."
    backward = "Flooding of coastal villages with salt in wells is due to rising sea levels."
    assert (1, "CAUSES", 0) in kinds(forward, effect)
    assert (1, "CAUSES", 0) in kinds(backward, effect)
    assert (0, "CAUSES", 1) in kinds(effect, forward)
    cause = "Satellites measure rising sea levels and the warmth of water."
    assert (0, "CAUSES", 1) in kinds(forward, cause)


def test_a_sentence_that_explains_is_told_from_one_that_repeats() -> None:
    fact = "Tram tickets stay cheap in the capital city."
    reason = "Tram tickets in the capital cost little because a levy on parking pays for half of each ride."
    assert kinds(reason, fact) == {(1, "EXPLAINS", 0)}
    assert kinds(fact, reason) == {(0, "EXPLAINS", 1)}


def test_confidence_is_the_described_sum_and_stays_within_0_and_1() -> None:
    assert confidence_of(0.8, 0.6, 0.5) == pytest.approx(0.3 * 0.8 + 0.5 * 0.6 + 0.2 * 0.5)
    assert (confidence_of(-1, 0, 0), confidence_of(2, 2, 2)) == (0, 1)


def test_other_scripts_and_empty_texts_are_no_error() -> None:
    for text in ("", "東京は大きい。30%", "1" * 5000, "?" * 50):
        assert all(found.source != found.target for found in between(text, text))
