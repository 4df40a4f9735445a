"""Profiles: what is read from YAML, and what is refused with a message that says what to do."""

from __future__ import annotations

import pytest

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.rerankers import Profile, SignalWeights, load_profile
from nlp_retrieval.rerankers.multi_signal.profile import profile_names

SMALL = {"name": "law", "subject": "court"}


def made(**settings):
    return Profile.from_mapping(SMALL | settings, "mine")


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_of_the_package_is_whole(name):
    profile = load_profile(name)
    assert profile.name == name
    assert [question.number for question in profile.questions] == list(range(1, len(profile.questions) + 1))
    assert all("{subject}" in question.text for question in profile.questions)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gruops": {}}, r"mine: unknown key 'gruops'; did you mean 'groups'"),
        ({"questions": [{"number": 1, "text": "a", "grups": []}]}, r"mine: unknown key 'questions.0.grups'$"),
        ({"questions": [{"number": 1}]}, r"mine, questions.0.text: Field required$"),
        (
            {"weights": {"transformer": 0, "word_vectors": 0, "patterns": 0, "fuzzy": 0}},
            r"mine, weights: all weights are 0; at least one must be above 0",
        ),
        ({"groups": {"a": ["cost"], "b": ["cost"]}}, r"groups.b: the keyword 'cost' repeats 'cost' in groups.a"),
        (
            {"patterns": {"a": ["(?<=x)y"]}},
            r"mine: patterns.a: the pattern '\(\?<=x\)y' does not compile: invalid perl operator",
        ),
        ({"patterns": {"a": ["x*"]}}, r"matches the empty text"),
        ({"questions": [{"number": 1, "text": "a"}, {"number": 3, "text": "b"}]}, r"question 2 is missing"),
        (
            {"questions": [{"number": 1, "text": "a", "groups": ["c"]}], "groups": {"cc": ["x"]}},
            r"no group 'c'; did you mean 'cc'",
        ),
        ({"min_similarity": 1.5}, r"mine, min_similarity: .*less than or equal to 1"),
    ],
)
def test_what_is_wrong_is_said(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        made(**settings)


def test_a_profile_of_ones_own_is_read_from_a_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("name: law\nsubject: court\ngroups: {appeal: [appeal, cassation]}\nweights: {fuzzy: 1}\n", "utf-8")
    profile = load_profile(file)
    assert profile.groups["appeal"] == ("appeal", "cassation")
    assert profile.weights == SignalWeights(fuzzy=1.0)
    assert load_profile(str(file)) == profile
