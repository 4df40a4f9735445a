"""Origins are counted, not URLs."""

from __future__ import annotations

import pytest

from nlp_retrieval.systems.evidence.verdict.claims import origins_of

STORY = "The dam above the town broke on Monday after a week of rain, and three hundred people had to leave their houses. " * 3
OTHER = "Engineers had warned for years that the wall was too thin; the council put off its repair twice, records show. " * 3
THIRD = "Fishermen of the north coast say that their nets have been empty since spring, and that nobody has told them why. " * 3
FOURTH = "The bridge collects tolls from lorries alone, and the county will sell it to whoever repaints its towers first. " * 3


def members(domains: list[set[str]], texts: list[str]) -> list[tuple[int, ...]]:
    return [origin.members for origin in origins_of(domains, texts)]


def test_different_texts_of_different_domains_are_two_origins() -> None:
    assert members([{"a.example"}, {"b.example"}], [STORY, OTHER]) == [(0,), (1,)]


def test_a_text_at_two_domains_is_of_one_origin_with_another_text_at_either() -> None:
    both = {"a.example", "b.example"}
    for domains in ([both, {"b.example"}], [{"b.example"}, both], [both, {"b.example", "c.example"}]):
        (origin,) = origins_of(domains, [STORY, OTHER])
        assert origin.reasons == ("one domain: b.example",)


def test_a_text_at_two_domains_does_not_make_their_publishers_one() -> None:
    both, one, other = {"a.example", "b.example"}, {"a.example"}, {"b.example"}
    assert members([one, other, both], [OTHER, THIRD, STORY]) == [(0, 2), (1,)]
    assert members([both, one, other], [STORY, OTHER, THIRD]) == [(0, 1), (2,)]
    shared = {"a.example", "c.example"}
    assert members([both, shared, one, other], [STORY, FOURTH, OTHER, THIRD]) == [(0, 1, 2), (3,)]


def test_one_wire_story_in_forty_outlets_is_one_origin() -> None:
    texts = [f"Outlet {number}. {STORY} Subscribe to outlet {number}." for number in range(40)]
    (origin,) = origins_of([{f"outlet{number}.example"} for number in range(40)], texts)
    assert len(origin.members) == 40
    assert origin.reasons == ("nearly the same text",)


def _outlet(name: str) -> str:
    return " ".join(f"{name} {number} of the {name} {number * 7} that {name} says" for number in range(200))


@pytest.mark.parametrize(
    "hidden",
    [
        "".join(f"{char}\u200b" for char in STORY),
        STORY.translate(str.maketrans("aeopc", "\u0430\u0435\u043e\u0440\u0441")),
        STORY.upper().replace(" ", "\u00a0\u2029"),
    ],
    ids=["zero width", "cyrillic", "upper case"],
)
def test_a_copy_that_only_looks_the_same_is_of_the_same_origin(hidden: str) -> None:
    assert members([{"a.example"}, {"b.example"}], [STORY, hidden]) == [(0, 1)]


def test_a_passage_that_two_long_pages_share_is_of_one_origin_and_a_sentence_is_not() -> None:
    story = "The dam above the town broke on Monday after a week of rain, and three hundred people had to leave. " * 2
    pages = [f"{_outlet('harbour')} {story}", f"{_outlet('market')} {story}"]
    domains = [{"a.example"}, {"b.example"}]
    assert members(domains, pages) == [(0,), (1,)]
    (origin,) = origins_of(domains, pages, [story, f"Our reporter writes: {story}"])
    assert origin.reasons == ("one passage copied",)
    assert len(origins_of(domains, pages, ["It rained for a week and a day."] * 2)) == 2
