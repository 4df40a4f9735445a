"""A site's rules are obeyed: the longest that fits, of the group that names who asks."""

from __future__ import annotations

import time

import pytest

from nlp_retrieval.systems.evidence.web_research.fetching import LARGEST_ROBOTS, RobotRules

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
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x=1", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/a.pdf/b.pdf", False),
        ("User-agent: *\nDisallow: /a$", "/a", False),
        ("User-agent: *\nDisallow: /a$", "/ab", True),
        ("User-agent: *\nDisallow: /a*a$", "/a", True),
        ("User-agent: *\nDisallow: /a$b", "/a$b/c", False),
        ("User-agent: *\nDisallow: /a%24", "/a$b", False),
        ("User-agent: *\nDisallow: /a%2Ab", "/a*b", False),
        ("User-agent: *\nDisallow: /a%2Ab", "/axb", True),
        ("User-agent: *\nDisallow: /*/private/*/x", "/a/private/b/c/x/d", False),
        ("User-agent: *\nDisallow: /*/private/*/x", "/a/private/x", True),
        ("User-agent: *\nDisallow: *", "/a", False),
        ("User-agent: *\nDisallow: *.php", "/a/b.php5", False),
        ("User-agent: *\nDisallow: /*?session=", "/a?b=1&session=2", True),
        ("User-agent: *\nDisallow: /*?*session=", "/a?b=1&session=2", False),
        ("User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/a", False),
        ("User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/b", False),
        ("User-agent: nlp_retrieval\nDisallow: /a\n\nUser-agent: x\nUser-agent: NLP_retrieval/2\nDisallow: /b", "/b", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: nlp_retrieval\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", "/b", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: nlp_retrieval\n", "/b", True),
        ("User-agent: nlp\nDisallow: /\n\nUser-agent: retrieval\nDisallow: /", "/a", True),
        ("User-agent: *\nAllow: /page\nDisallow: /*.htm", "/page.htm", False),
        ("User-agent: *\nAllow: /page.h\nDisallow: /*.htm", "/page.htm", True),
        ("User-agent: *\nDisallow: /$\nAllow: /", "/", False),
        ("User-agent: *\nDisallow: /*a\nAllow: /ba", "/ba", True),
        ("User-agent: *\nDisallow: private\nDisallow: http://[\nAllow:", "/private", True),
        ("\ufeffUser-agent: *\rDisallow: /a\r\nDisallow: /b", "/b", False),
    ],
)
def test_the_longest_rule_that_fits_counts(rules: str, path: str, allowed: bool) -> None:
    assert RobotRules(200, rules.encode()).allow(AGENT, f"https://a.example{path}") is allowed


def test_an_address_that_is_none_is_forbidden() -> None:
    assert not RobotRules(200, b"").allow(AGENT, "https://[/")
    assert not RobotRules(200, b"").allow(AGENT, "https://a.example/\ud800")


@pytest.mark.parametrize(
    ("status", "allowed"), [(404, True), (401, True), (403, True), (429, False), (500, False), (204, False)]
)
def test_without_rules_the_status_decides(status: int, allowed: bool) -> None:
    assert RobotRules(status).allow(AGENT, "https://a.example/a") is allowed


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
    rules = RobotRules(200, b"User-agent: *\n" + line * (LARGEST_ROBOTS // len(line)))
    assert rules.allow(AGENT, "https://a.example/" + "xa" + "a" * 8_000)
    assert time.process_time() - start < 10
