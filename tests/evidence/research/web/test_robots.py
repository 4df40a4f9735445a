"""A site's rules are obeyed: the longest that fits, of the group that names who asks."""

from __future__ import annotations

import pytest

from nlp_retrieval.evidence.research.web.robots import RobotRules

AGENT = "nlp_retrieval/0.1 (research fetcher)"


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("User-agent: *\nDisallow: /private", "/private/a", False),
        ("User-agent: *\nDisallow: /private", "/public", True),
        ("User-agent: *\nAllow: /\nDisallow: /private", "/private/a", False),
        ("User-agent: *\nDisallow: /\nAllow: /open", "/open/a", True),
        ("User-agent: *\nDisallow: /\nAllow: /open", "/other", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
        ("User-agent: *\n\nDisallow: /private", "/private/a", False),
        ("User-agent: *\nDisallow: /private/*", "/private/a", False),
        ("user-agent : *\nDISALLOW :/private # all of it", "/private/a", False),
        ("User-agent: NLP_Retrieval\nDisallow: /\n\nUser-agent: *\nDisallow:", "/a", False),
        ("User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow:", "/a", True),
        ("User-agent: other\nUser-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nSitemap: /x\nCrawl-delay: \u00b2\nDisallow: /", "/a", False),
        ("Disallow: /", "/a", True),
        ("", "/a", True),
        ("<html>not found</html>", "/a", True),
        ("User-agent: *\nDisallow: /a%20b", "/a%20b/c", False),
        ("User-agent: *\nDisallow: /\u00e4", "/%C3%A4/c", False),
    ],
)
def test_the_longest_rule_that_fits_counts(rules: str, path: str, allowed: bool) -> None:
    assert RobotRules(200, rules.encode()).allow(AGENT, f"https://a.example{path}") is allowed


def test_a_rule_that_is_no_path_forbids_all() -> None:
    assert not RobotRules(200, b"User-agent: *\nDisallow: http://[\n").allow(AGENT, "https://a.example/")


@pytest.mark.parametrize(
    ("status", "allowed"), [(404, True), (401, True), (403, True), (429, False), (500, False), (204, False)]
)
def test_without_rules_the_status_decides(status: int, allowed: bool) -> None:
    assert RobotRules(status).allow(AGENT, "https://a.example/a") is allowed


def test_a_large_file_is_read_in_time_that_its_length_allows() -> None:
    rules = RobotRules(200, b"User-agent: *\n" + b"Disallow: /a\n" * 30_000)
    assert rules.allow(AGENT, "https://a.example/b")
