"""What models write where phrases were asked for becomes phrases, or nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.lm.reading import read_line, read_object, read_passage, read_phrases, unwrapped

CLAIM = "The director of Lolita was born in New York."


def test_phrases_are_found_in_whatever_form_they_come(subtests: pytest.Subtests):
    for answer in [
        ["Stanley Kubrick", "Lolita 1962 film"],
        '["Stanley Kubrick", "Lolita 1962 film"]',
        "1. Stanley Kubrick\n2. Lolita 1962 film",
        "- Stanley Kubrick\n\n- Lolita 1962 film",
        "Here are two search phrases:\n\n* Stanley Kubrick\n* Lolita 1962 film",
        "Phrase 1: Stanley Kubrick\nPhrase 2: Lolita 1962 film",
        "Search queries:\nStanley Kubrick\nLolita 1962 film",
        '```json\n["Stanley Kubrick", "Lolita 1962 film"]\n```',
        '["Stanley Kubrick", "Lolita 1962 film",]',
        "{'phrases': ['Stanley Kubrick', 'Lolita 1962 film'],}",
        '```json\n{"phrases": ["Stanley Kubrick", "Lolita 1962 film", "by Nab',
        '{"query": "Stanley Kubrick"}\n{"query": "Lolita 1962 film"}',
        '{"query": "Stanley Kubrick"}\n\n{"query": "Lolita 1962 film"}',
        "a) Stanley Kubrick\nb) Lolita 1962 film\n\nLet me know if you need more.",
        "[1] Stanley Kubrick\n[2] Lolita 1962 film",
        'Sure! {"phrases": ["Stanley Kubrick", "Lolita 1962 film"]} I hope this helps',
        [["Stanley Kubrick"], ["  Lolita\t1962 film  "]],
        ["Stanley Kubrick", CLAIM, CLAIM.upper(), "", " ", "the", "...", None, 7, "stanley kubrick.", "Lolita 1962 film"],
    ]:
        with subtests.test(answer=answer):
            assert read_phrases(answer, CLAIM, 3, 32) == ["Stanley Kubrick", "Lolita 1962 film"]


def test_an_answer_without_a_phrase_is_none(subtests: pytest.Subtests):
    for answer in [
        *("There are no phrases for it.\n[]", "There are none: {}", '{"phrases": []}'),
        *("  \n ", "[]", "null", "...", "Here are the phrases:", '["Stan'),
        *("I\u2019m sorry, but I can't help with that.", "As an AI, I cannot search.", "Es tut mir leid, das geht nicht."),
        *([""], ["the", "of"], CLAIM, None, 7),
    ]:
        with subtests.test(answer=answer):
            assert read_phrases(answer, CLAIM, 3, 32) is None


def test_quotation_marks_brackets_and_asterisks_of_a_text_stay():
    for text in ['"Lolita" (1962)', "*Lolita* by [Kubrick]", "**Lolita**", "'Lolita'", "[Lolita]"]:
        assert read_phrases([text], CLAIM, 3, 32) == read_phrases(f"1. {text}\n", CLAIM, 3, 32) == [text]
        assert read_passage(f" {text}\n", CLAIM, 32) == read_line(f" {text}\n", 32) == unwrapped(text) == text


@given(answer=st.recursive(st.none() | st.integers() | st.text(max_size=40), lambda inner: st.lists(inner, max_size=5)))
def test_whatever_comes_phrases_are_distinct_lines_with_a_word(answer):
    for form in (answer, json.dumps(answer), json.dumps({"phrases": answer}, ensure_ascii=False)):
        found = read_phrases(form, CLAIM, 4, 6)
        assert found is None or 1 <= len(found) <= 4
        for phrase in found or []:
            assert re.search(r"\w", phrase)
            assert phrase == " ".join(phrase.split())
            assert len(phrase.split()) <= 6
        assert len({phrase.casefold() for phrase in found or []}) == len(found or [])


def test_an_answer_that_does_not_stop_is_read_in_linear_time():
    program = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from nlp_retrieval.lm.reading import read_passage, read_phrases
for unit in ("[", "{", " ", "\\n", "; ", '"', "', '", "1. ", "- ", "phrase ", "``` ", "a b\\n"):
    answer = unit * (1_000_000 // len(unit))
    read_phrases(answer, "claim", 3, 9)
    read_phrases(["x", answer, answer], "claim", 3, 9)
    read_passage(answer, "claim", 9)
"""
    # all of it takes a second; quadratic time would take minutes
    subprocess.run([sys.executable, "-c", program], check=True)


def test_titles_and_statements_that_begin_as_a_refusal_does_are_none():
    for text in ["I'm Sorry", "I Can't Help Myself (Sugar Pie, Honey Bunch)", "As an AI researcher, Hinton left Google."]:
        assert read_passage(text, CLAIM, 32) == text
    assert read_passage("As an AI language model, I cannot browse.", CLAIM, 32) is None


def test_an_object_is_read_with_a_comma_too_many_or_python_s_quotes_and_none_that_broke_off():
    for answer in ['So: {"grade": 2, "why": "it is",}', "{'grade': 2, 'why': 'it is'}", '{grade: 2, why: "it is"} // so']:
        assert read_object(answer) == {"grade": 2, "why": "it is"}
    assert read_object('{"grade": 2, "why": "it') is read_object('{"grade": NaN}') is read_object("{so}") is None
