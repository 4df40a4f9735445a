"""Profiles: what is read from YAML, and what is refused with a message that says what to do."""

from __future__ import annotations

import pytest

from nlp_retrieval.errors import ConfigurationError, SourceError
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


def test_climate_asks_eight_questions_with_keywords_each():
    profile = load_profile("climate")
    assert len(profile.questions) == 8
    assert all(10 <= len(question.keywords) <= 30 for question in profile.questions)
    described = {
        "emissions": ["emission", "ghg", "co2", "carbon dioxide"],
        "targets": ["target", "goal", "reduction", "percentage"],
        "energy": ["renewable", "solar", "wind", "fossil fuel"],
        "adaptation": ["adaptation", "resilience", "vulnerability"],
        "finance": ["finance", "funding", "investment", "cost"],
    }
    for group, keywords in described.items():
        assert set(keywords) <= set(profile.groups[group])


def test_the_defaults_are_those_described():
    profile = made()
    assert profile.weights.as_dict() == {"transformer": 0.25, "word_vectors": 0.20, "patterns": 0.30, "fuzzy": 0.25}
    assert (profile.min_similarity, profile.top_k, profile.fuzzy_threshold, profile.max_hops) == (0.2, 20, 0.6, 2)
    assert profile.n_per_document is None


def test_the_subject_stands_in_the_question_or_is_left_out():
    question = load_profile("guidelines").question(2)
    assert question.asked_of("asthma") == "Whom may a treatment of asthma harm?"
    assert question.asked_of(None) == "Whom may a treatment of harm?"
    assert question.asked_of("{subject} {0}") == "Whom may a treatment of {subject} {0} harm?"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gruops": {}}, r"mine: unknown key 'gruops'; did you mean 'groups'"),
        ({"weights": {"fuzy": 1}}, r"mine, weights: unknown key 'fuzy'; did you mean 'fuzzy'"),
        ({"weights": {"fuzzy": -1}}, r"mine, weights.fuzzy: .*greater than or equal to 0, not '-1'"),
        (
            {"weights": {"transformer": 0, "word_vectors": 0, "patterns": 0, "fuzzy": 0}},
            r"mine, weights: all weights are 0; at least one must be above 0",
        ),
        ({"groups": {"a": ["cost", "Costs"]}}, r"'Costs' repeats 'cost', in groups.a "),
        ({"groups": {"a": ["cost"], "b": ["cost"]}}, r"the keyword 'cost' is repeated, in groups.a and in groups.b"),
        ({"groups": {"a": ["?!"]}}, r"groups.a: the keyword '\?!' has no word in it"),
        ({"groups": {"a": "cost"}}, r"mine, groups.a: Input should be a list, not 'cost'"),
        (
            {"patterns": {"a": ["(?<=x)y"]}},
            r"mine: patterns.a: the pattern '\(\?<=x\)y' does not compile: invalid perl operator",
        ),
        ({"patterns": {"a": [r"(x)\1"]}}, r"does not compile: invalid escape sequence"),
        ({"patterns": {"a": ["x*"]}}, r"matches the empty text"),
        ({"patterns": {"a": ["(.{100}){9}"]}}, r"becomes 7,222 instructions; 5,000 are allowed"),
        ({"patterns": {"a": ["x" * 1001]}}, r"has 1,001 characters; 1,000 are allowed"),
        ({"questions": [{"number": 1, "text": "a"}, {"number": 1, "text": "b"}]}, r"question 1 occurs more than once"),
        ({"questions": [{"number": 1, "text": "a"}, {"number": 3, "text": "b"}]}, r"question 2 is missing"),
        ({"questions": [{"number": 1, "txt": "a"}]}, r"mine, questions, entry 1: unknown key 'txt'; did you mean 'text'"),
        (
            {"questions": [{"number": 1, "text": "a", "groups": ["c"]}], "groups": {"cc": ["x"]}},
            r"no group 'c'; did you mean 'cc'",
        ),
        ({"language": "englisch"}, r"no stemmer for the language 'englisch'; did you mean 'english'"),
        ({"min_similarity": 1.5}, r"mine, min_similarity: .*less than or equal to 1"),
        ({"max_hops": 4}, r"mine, max_hops: .*less than or equal to 3"),
    ],
)
def test_what_is_wrong_is_said(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        made(**settings)


def test_an_unknown_name_is_met_by_the_nearest():
    with pytest.raises(ConfigurationError, match="no profile 'climat'; did you mean 'climate'"):
        load_profile("climat")
    with pytest.raises(SourceError, match=r"no profile at \./climate\.yaml; profiles of the package: climate, guidelines"):
        load_profile("./climate.yaml")


def test_a_question_that_is_not_there_is_an_error():
    with pytest.raises(ConfigurationError, match="'climate' has no question '1'; they are numbered 1 to 8"):
        load_profile("climate").question("1")
    with pytest.raises(ConfigurationError, match="'climate' has no question 9; they are numbered 1 to 8"):
        load_profile("climate").question(9)


def test_a_profile_of_ones_own_is_read_from_a_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("name: law\nsubject: court\ngroups: {appeal: [appeal, cassation]}\nweights: {fuzzy: 1}\n", "utf-8")
    profile = load_profile(file)
    assert profile.groups["appeal"] == ("appeal", "cassation")
    assert profile.weights == SignalWeights(fuzzy=1.0)
    assert load_profile(str(file)) == profile


def test_nothing_of_a_domain_is_in_code():
    """Words of climate plans stand in the profile, and in no module of the rooms that read one."""
    from pathlib import Path

    import nlp_retrieval

    package = Path(nlp_retrieval.__file__).parent
    modules = [*(package / "rerankers" / "multi_signal").glob("*.py")]
    words = ("climate", "emission", "co2", "ndc", "adaptation", "renewable")
    assert [
        (file.name, word) for file in modules for word in words if word in file.read_text("utf-8").lower().replace("ndcg", "")
    ] == []


# words
