"""Which sentence cites what, and when its source came back and was opened."""

import pytest

from nlp_retrieval.agents import AgentStep, Trajectory, trajectory_citations

SEARCH = AgentStep(kind="search", query="krill", results=("w", "k"))


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("The whale [w] eats krill. It swims.", [("The whale eats krill.", "w")]),
        ("The whale eats krill. [w] It swims [k].", [("The whale eats krill.", "w"), ("It swims.", "k")]),
        ("It weighs 100 t [w, k].", [("It weighs 100 t.", "w"), ("It weighs 100 t.", "k")]),
        ("It weighs 100 t [w][k]; and [w] more.", [("It weighs 100 t; and more.", "w"), ("It weighs 100 t; and more.", "k")]),
        ("Two things:\n- krill is small [k]\n- whales are not 【w】", [("krill is small", "k"), ("whales are not", "w")]),
        ("See [the page] and [2019] and [x].", []),
        ("[w] says so.", [("says so.", "w")]),
        ("", []),
    ],
)
def test_a_mark_belongs_to_its_sentence_and_one_after_the_end_to_the_sentence_before(
    answer: str, cited: list[tuple[str, str]]
) -> None:
    found = trajectory_citations(Trajectory(question_id="q", steps=(SEARCH,), answer=answer))
    assert [(citation.claim, citation.item_id) for citation in found] == cited


def test_what_had_come_back_and_was_opened_is_known_at_each_step() -> None:
    steps = (
        SEARCH,
        AgentStep(kind="note", text="Perhaps [w] or [k]."),
        AgentStep(kind="open", item_id="w"),
        AgentStep(kind="open", item_id="k", error="gone"),
        AgentStep(kind="other", tool="calculator"),
    )
    found = trajectory_citations(Trajectory(question_id="q", steps=steps, answer="It is [w]. Or [k]."))
    assert [(c.step, c.calls, c.item_id, c.came, c.opened, c.in_answer) for c in found] == [
        (2, 1, "w", 1, None, False),
        (2, 1, "k", 1, None, False),
        (6, 3, "w", 1, 3, True),
        (6, 3, "k", 1, None, True),
    ]


def test_listed_citations_without_a_mark_have_the_whole_answer_as_their_claim() -> None:
    trajectory = Trajectory(question_id="q", steps=(SEARCH,), answer="It eats krill [w]. So it is.", citations=("w", "z"))
    assert [(c.claim, c.item_id, c.came) for c in trajectory_citations(trajectory)] == [
        ("It eats krill.", "w", 1),
        ("It eats krill [w]. So it is.", "z", None),
    ]
