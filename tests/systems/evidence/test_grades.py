"""Grades of sources by their address, and rules that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval.errors import ConfigurationError, InputError
from nlp_retrieval.systems.evidence.grades import GRADES, QualityRule, QualityRules, assess_source_quality

GRADED = {
    "https://www.nature.com/articles/s41586-024-00000-0": "A",
    "https://ec.europa.eu/eurostat/databrowser/view/x": "A",
    "https://pubmed.ncbi.nlm.nih.gov/12345/": "A",
    "https://www.epa.gov/climate": "B",
    "https://www.gov.uk/guidance": "B",
    "https://arxiv.org/abs/2401.00001": "B",
    "https://de.wikipedia.org/wiki/Regen": "B",
    "https://www.example.com/news": "C",
    "https://shop.springer.com/": "C",
    "http://[2001:db8::1]/": "C",
    "file:///home/a/nature.com/x.pdf": "C",
    "https://en.wikipedia.org/wiki/Talk:Rain": "D",
    "https://www.example.edu/~someone/paper.html": "D",
    "https://www.example.com/blog/post": "D",
    "https://www.example.com/blog/": "D",
    "https://www.example.com/blogger/": "C",
    "https://rain.blogspot.com/2020": "D",
    "https://old.reddit.com/r/rain": "D",
    "https://bit.ly/abc": "E",
}


LOOKALIKES = (
    "https://nature.com.example.org/",
    "https://example.org/?u=https://nature.com/",
    "https://notnature.com/",
    "https://nаture.com/",  # noqa: RUF001
)


def test_an_address_has_the_grade_of_the_first_rule_that_fits_and_not_that_of_one_like_it() -> None:
    assert {url: assess_source_quality(url) for url in GRADED} == GRADED
    assert {assess_source_quality(url) for url in LOOKALIKES} == {"C"}


def test_what_is_no_url_is_an_error() -> None:
    for url in ("", "nature.com", "https://", "https://example.org\\@nature.com/", "https://nature.com\x00/"):
        with pytest.raises(InputError, match="URL"):
            assess_source_quality(url)


def test_every_grade_is_given_and_every_rule_says_why() -> None:
    import nlp_retrieval.systems.evidence.grades as module

    rules = QualityRules.read(Path(module.__file__).with_name("grades.yaml"))
    assert {rule.grade for rule in rules.rules} | {rules.default} == set(GRADES)
    assert all(rule.why for rule in rules.rules)
    names = [name for rule in rules.rules if not rule.path for name in rule.domain]
    assert len(names) == len(set(names)), "a name that stands twice is graded by its first rule alone"


def write(path: Path, text: str) -> Path:
    file = path / "rules.yaml"
    file.write_text(text, "utf-8")
    return file


def test_the_users_own_rules_replace_ours(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "default: E\nrules:\n- {grade: A, domain: Example.org, path: ['/data/*', '*.csv']}\n- {grade: B, suffix: .org}\n",
    )
    assert [
        assess_source_quality(f"https://{rest}", rules)
        for rules in (file, str(file), QualityRules.read(file))
        for rest in ("www.example.org/data/1", "example.org/x/y.csv", "example.org/x", "other.org", "nature.com")
    ] == ["A", "A", "B", "B", "E"] * 3
    assert QualityRules((QualityRule("D", host=("a?.example.org",)),)).grade("http://a1.example.org/") == "D"


WRONG = {
    "rules: x": "rules is not a list",
    "default: F\nrules: []": "default: 'F' is not a grade; grades are A, B, C, D and E",
    "rules:\n- {grade: A}": "rule 1: no condition, so it would match every URL",
    "rules:\n- {grade: A, domain: a.com}\n- {grade: A, domian: a.com}": "rule 2: unknown key 'domian'; did you mean 'domain'",
    "rules:\n- {grade: A, domain: '*.com'}": "'*.com' fits no URL; write a name without signs",
    "rules:\n- {grade: A, domain: www.a.com}": "'www.a.com' is not a registered name",
    "rules:\n- {grade: A, host: 'a.com/x'}": "rule 1, host: 'a.com/x' fits no URL",
    "rules: !!python/object/apply:os.system [ls]": "the tag .* is refused",
    "[]": "not a mapping of settings",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_rules_that_cannot_be_used_are_an_error_that_names_the_place(text: str, message: str, tmp_path: Path) -> None:
    import re

    file = write(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        QualityRules.read(file)
    assert str(file) in str(caught.value)
    assert message in str(caught.value) or re.search(message, str(caught.value))


def test_a_pattern_of_stars_does_not_hang(tmp_path: Path) -> None:
    rules = QualityRules.read(write(tmp_path, f"rules:\n- {{grade: A, path: '/{'*a' * 90}b'}}\n"))
    assert rules.grade("https://example.org/" + "a" * 2000) == "C"
