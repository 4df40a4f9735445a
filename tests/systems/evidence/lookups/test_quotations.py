"""Words in quotation marks stand in the source as they are quoted, whatever the marks are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.lookups.quotations import missing_quotations

SOURCE = (
    "The North Road. The mayor opened the road on 12 March 2019, and called it \u201ca gate to the north\u201d. It is 40 km long. "  # noqa: E501
    "The dogs' owners don't like it, he said. \u201cNobody,\u201d she added, \u201cwalks there.\u201d 市長はこの道を北の門と呼んだ。"  # noqa: E501
    + " Nothing happened." * 100
    + " Snow fell on the harbour."
)
PAIRS = [
    ("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u201e", "\u201c"), ("\u201a", "\u2018"), ("\u00ab", "\u00bb"), ("\u00bb", "\u00ab"),  # noqa: E501
    ("\u00ab\u00a0", "\u00a0\u00bb"), ("\u2039", "\u203a"), ("\u203a", "\u2039"), ("\u300c", "\u300d"), ("\u300e", "\u300f"),
    ('"', '"'), ("'", "'"), ("\uff02", "\uff02"), ("\u201d", "\u201d"), ("\u2019", "\u2019"), ("\u201e", "\u201d"),
    ("``", "''"), ("<<", ">>"), (",,", "''"), ("\u2018", "'"), ("\u201c", '"'),
]  # fmt: skip


@pytest.mark.parametrize(("begin", "end"), PAIRS)
def test_a_made_up_quotation_is_named_between_any_marks(begin: str, end: str) -> None:
    said = f"He called it {begin}a door to the dark south{end} when it opened."
    assert missing_quotations(said, SOURCE) == ("a door to the dark south",)
    assert missing_quotations(said.replace("door to the dark south", "gate to the north"), SOURCE) == ()


@pytest.mark.parametrize(
    ("sentence", "missing"),
    [
        ("'The dogs' owners were all there', he said.", ["The dogs' owners were all there"]),
        ("'The dogs' owners don't like it', he said.", []),
        (
            "\u201cHe said \u2018it is huge and bad\u2019 to all of us\u201d",
            ["He said \u2018it is huge and bad\u2019 to all of us"],
        ),
        ("\u201cIt was huge and bad.", ["It was huge and bad."]),
        ('"a gate to the north" and "a big door here"', ["a big door here"]),
        ("市長は「北の門と呼んだ」と言い、「南の大きな扉と呼んだ」とも言った。", ["南の大きな扉と呼んだ"]),
    ],
)
def test_quotations_within_others_and_beyond_a_sentence_are_seen(sentence: str, missing: list[str]) -> None:
    assert list(missing_quotations(sentence, SOURCE)) == missing


@pytest.mark.parametrize(
    ("quotation", "stands"),
    [
        ("The mayor \u2026 called it \u2018a gate to the north\u2019", True),
        ("a gate ... north", True),
        ("[T]he mayor opened the road", True),
        ("The ... opened ... the ... owners ... it", False),
        ("opened [the] road on 12 March", True),
        ("a gate to the north [...] the mayor opened", False),
        ("the mayor opened the road ... snow fell on the harbour", False),
    ],
)
def test_parts_of_a_quotation_stand_in_order_and_near_each_other(quotation: str, stands: bool) -> None:
    missing = missing_quotations(f"It says \u201c{quotation}\u201d there.", SOURCE)
    assert missing == (() if stands else (quotation,))


WORDS = st.lists(st.sampled_from("ash birch cedar elm fir hazel larch maple oak pine".split()), min_size=3, max_size=12)


@given(WORDS, WORDS, WORDS, st.sampled_from(PAIRS))
def test_only_what_stands_there_passes_between_any_marks(
    before: list[str], quoted: list[str], after: list[str], pair: tuple[str, str]
) -> None:
    source = " ".join([*before, *quoted, *after])
    begin, end = pair
    assert missing_quotations(f"It has {begin}{' '.join(quoted)}{end} there.", source) == ()
    changed = " ".join([*quoted[:-1], "willow"])
    assert missing_quotations(f"It has {begin}{changed}{end} there.", source) == (changed,)
