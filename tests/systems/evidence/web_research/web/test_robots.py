"""A site's rules are obeyed: the longest that fits, of the group that names who asks."""

from __future__ import annotations

import time

import pytest

from nlp_retrieval.systems.evidence.web_research.fetching import LARGEST_ROBOTS, RobotRules

AGENT = "nlp_retrieval/0.1 (research fetcher)"


def test_the_longest_rule_that_fits_counts() -> None:
    rules = RobotRules(b"\xef\xbb\xbfUser-agent: *\nDisallow: /\nAllow: /open\n\nUser-agent: other\nDisallow: /open")
    assert rules.allow(AGENT, "https://a.example/open/a?b=1")
    assert not rules.allow(AGENT, "https://a.example/private")


@pytest.mark.parametrize(
    "line",
    [
        b"Disallow: /a\n",
        b"Disallow: /*a*a*a*a*a*a*a*a*a*a*b\n",
        b"Disallow: /" + b"*a" * 200_000 + b"*b\n",
        b"Disallow: /*" + b"a" * 40 + b"b" + b"a" * 40 + b"*c$\n",
        b"User-agent: a\n",
        b"User-agent: *\nDisallow: /b\n",
    ],
    ids=["many rules", "stars", "one rule of stars", "long parts", "agents", "groups"],
)
def test_a_large_file_is_read_in_time_that_its_length_allows(line: bytes) -> None:
    start = time.process_time()
    rules = RobotRules(b"User-agent: *\n" + line * (LARGEST_ROBOTS // len(line)))
    assert rules.allow(AGENT, "https://a.example/" + "xa" + "a" * 8_000)
    assert time.process_time() - start < 10
