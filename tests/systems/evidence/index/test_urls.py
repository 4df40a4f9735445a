"""Which URLs are one page, which are not, and which are none."""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.errors import DependencyError, InputError
from nlp_retrieval.systems.evidence.index.urls import canonical_url, registrable_domain
from nlp_retrieval.systems.evidence.web_research.fetching import HttpFetcher

PAGE = "https://example.org/a/b?x=1&y=2"

SAME = [
    (PAGE, "http://example.org/a/b?x=1&y=2"),
    (PAGE, "https://example.org/a/b/?x=1&y=2"),
    (PAGE, "https://example.org/a/b?y=2&x=1"),
    (PAGE, "https://example.org/a/b?x=1&y=2#section"),
    (PAGE, "https://example.org/a/b?utm_source=mail&x=1&y=2&UTM_Campaign=z"),
    ("https://bücher.example/", "https://xn--bcher-kva.example"),
    ("https://[2001:DB8::0:1]/", "https://[2001:db8::1]"),
    ("https://doi.org/10.1000/abc(1)2", "http://dx.doi.org/10.1000/ABC(1)2"),
    ("https://doi.org/10.1000/abc", "doi:10.1000/ABC"),
    ("file:///tmp/a.txt", "file://localhost/tmp/./a.txt#3"),
]

OTHER = [
    ("https://doi.org/10.1000/abc", "https://doi.org/10.1000/abd"),
    (PAGE, "https://example.org/a/B?x=1&y=2"),
    (PAGE, "https://www.example.org/a/b?x=1&y=2"),
    (PAGE, "https://example.org:8080/a/b?x=1&y=2"),
    (PAGE, "https://example.org/a%2Fb?x=1&y=2"),
    ("https://еxample.org", "https://example.org"),  # noqa: RUF001 -- the first letter is Cyrillic
]

NONE = [
    "",
    "example.org/page",
    "ftp://example.org/x",
    "javascript:alert(1)",
    "https://me:secret@example.org/",
    "https://example.org/a\nb",
    "https://example.org/\ud800",
    "file:///a%00b",
]


def test_these_are_one_page():
    for one, other in SAME:
        assert canonical_url(one) == canonical_url(other)


def test_these_are_two_pages():
    for one, other in OTHER:
        assert canonical_url(one) != canonical_url(other)


def test_this_is_no_url_of_a_source():
    for url in NONE:
        with pytest.raises(InputError):
            canonical_url(url)


def test_the_message_says_what_to_write_and_no_password():
    with pytest.raises(InputError, match="a URL is a string, not NoneType"):
        canonical_url(None)
    with pytest.raises(InputError, match=r'write "https://www\.example\.org/x"'):
        canonical_url("www.example.org/x")
    with pytest.raises(InputError) as raised:
        canonical_url("https://me:hunter2@example.org/")
    assert "hunter2" not in str(raised.value)


def test_a_package_that_is_missing_is_named_with_its_cure(monkeypatch):
    monkeypatch.delitem(sys.modules, "nlp_retrieval.systems.evidence.web_research.connections", raising=False)
    attempts = {"idna": lambda: canonical_url("https://bücher.example"), "protego": lambda: HttpFetcher().fetch(PAGE)}
    for package, attempt in attempts.items():
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(DependencyError, match=rf"needs .*{package}: pip install"):
            attempt()


@given(
    st.sampled_from(["example.org", "bücher.example", "10.0.0.1", "a.b.co.uk:8080"]),
    st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=40),
)
def test_a_canonical_form_is_its_own(host, rest):
    once = canonical_url(f"http://{host}/{rest}")
    assert canonical_url(once) == once
    assert urlsplit(once).scheme == "https"


DOMAINS = [
    ("https://news.bbc.co.uk/1", "bbc.co.uk"),
    ("http://www.example.org:8080/x", "example.org"),
    ("https://alice.github.io", "github.io"),
    ("https://127.0.0.1/x", "127.0.0.1"),
    ("https://[::1]/x", "::1"),
    ("https://www.bücher.de", "xn--bcher-kva.de"),
    ("file:///tmp/x", ""),
]


def test_the_domain_that_somebody_registered():
    for url, domain in DOMAINS:
        assert registrable_domain(url) == domain
