"""Grades of sources by their address."""

from __future__ import annotations

import pytest

from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.grades import GRADES, assess_source_quality, quality_rules

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


def test_every_grade_is_given_and_no_name_stands_twice() -> None:
    assert {rule["grade"] for rule in quality_rules()} | {"C"} == set(GRADES)
    names = [name for rule in quality_rules() if "path" not in rule for name in rule.get("domain", [])]
    assert len(names) == len(set(names)), "a name that stands twice is graded by its first rule alone"
