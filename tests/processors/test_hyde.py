"""A query is searched with the passage that would answer it, beside itself or instead."""

from __future__ import annotations

import json

import pytest
from chat_server import asked, fields

from nlp_retrieval.core.context import collected_notes
from nlp_retrieval.errors import QueryError, RetrievalWarning
from nlp_retrieval.processors.with_model import ExpandedQuery, HyDE


@pytest.fixture(autouse=True)
def writes(server):
    """Writes a passage about the query in two lines."""
    server.answer = lambda body: fields(passage=f"It is known of\n  {asked(body, 'query')} that it is so.")


def test_the_passage_stands_beside_the_query_or_instead_of_it(model):
    passage = "It is known of red fox that it is so."
    assert HyDE(model()).process(["red fox", ""]) == [["red fox", passage], [""]]
    assert HyDE(model(), keep_query=False).process(["red fox", "?!"]) == [[passage], ["?!"]]
    assert HyDE(model(), max_words=3).process(["red fox"]) == [["red fox", "It is known"]]


@pytest.mark.parametrize(
    "written",
    ['"It is **red**," he said [1].', "[The fox] (*Vulpes*) is 'red'", "*Vulpes vulpes*", '"red fur"', "- red - _and_ `white`"],
)
def test_of_a_passage_only_blanks_around_it_are_left_out(server, model, written):
    server.answer = lambda body: fields(passage=f"  {written}\n\n")
    assert HyDE(model()).process(["red fox"]) == [["red fox", written]]
    for form in ('{"hypothetical_passage": %s}', "[%s]", '```json\n{"passage": %s}\n```'):
        server.answer = lambda body, form=form: form % json.dumps(written)
        assert HyDE(model()).process([f"red fox {form}"]) == [[f"red fox {form}", written]]
    server.answer = lambda body: f" {written}\n"  # without the marks of its field
    assert HyDE(model(), keep_query=False).process(["blue fox"]) == [[written]]


NOTHING = ["", "...", "the", fields(passage=""), fields(passage="RED FOX?"), fields(passage="of the"), '{"passage": ""}']


@pytest.mark.parametrize("reply", [*NOTHING, 500, None, 401])
def test_without_a_passage_the_query_stays_with_one_warning_that_counts(server, model, reply):
    answers = server.answer
    server.answer = lambda body: reply if asked(body, "query") == "red fox" else answers(body)
    lm = model(retries=0, calls_at_once=1)
    with pytest.warns(RetrievalWarning, match="hyde: no usable answer.*1 of 2 queries") as caught:
        found = HyDE(lm, keep_query=False).process(["blue whale", "red fox"])
    assert found == [["It is known of blue whale that it is so."], ["red fox"]]
    assert len(caught) == 1
    assert lm.counts.degraded == 1
    with collected_notes() as notes:
        HyDE(lm, keep_query=False).process(["red fox"])
    assert [note.partition(" from ")[0] for note in notes] == ["hyde: no usable answer"]


def test_a_query_is_expanded_into_three_fields_in_one_batch(server, model):
    lm = model(calls_at_once=4)
    passage = "It is known of {} that it is so."
    assert HyDE(lm, keep_query=False).expand(["red fox", "?!", "blue whale", "red fox"]) == [
        ExpandedQuery("red fox", passage.format("red fox"), f"red fox {passage.format('red fox')}"),
        ExpandedQuery("?!", "", "?!"),
        ExpandedQuery("blue whale", passage.format("blue whale"), f"blue whale {passage.format('blue whale')}"),
        ExpandedQuery("red fox", passage.format("red fox"), f"red fox {passage.format('red fox')}"),
    ]
    assert server.calls == 2
    assert dict(HyDE(lm).expand("?!")[0]) == {"original": "?!", "hypothetical": "", "expanded": "?!"}
    assert HyDE(lm).expand([]) == []
    with pytest.raises(QueryError):
        HyDE(lm).expand([5])
