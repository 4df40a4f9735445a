"""Which URLs are one page, which are not, and which are none."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.index.urls import canonical_url, registrable_domain

PAGE = "https://example.org/a/b?x=1&y=2"

SAME = [
    (PAGE, "http://example.org/a/b?x=1&y=2"),
    (PAGE, "HTTPS://EXAMPLE.org/a/b?x=1&y=2"),
    (PAGE, "https://example.org:443/a/b?x=1&y=2"),
    (PAGE, "http://example.org:80/a/b?x=1&y=2"),
    (PAGE, "https://example.org./a/b?x=1&y=2"),
    (PAGE, "https://example.org/a/b/?x=1&y=2"),
    (PAGE, "https://example.org/a/b?y=2&x=1"),
    (PAGE, "https://example.org/a/b?x=1&y=2#section"),
    (PAGE, "https://example.org/a/b?x=1&y=2#:~:text=some%20words"),
    (PAGE, "https://example.org/a/b?utm_source=mail&x=1&y=2&UTM_Campaign=z"),
    (PAGE, "https://example.org/a/b?x=1&y=2&gclid=1&fbclid=2&msclkid=3&mc_eid=4"),
    (PAGE, "https://example.org/a/b?x=1&utm%5Fsource=s&y=2"),
    (PAGE, "https://example.org/a/./c/../b?x=1&y=2"),
    (PAGE, "https://example.org/a/%62?x=%31&y=2"),
    (PAGE, "  https://example.org/a/b?x=1&y=2\n"),
    ("https://example.org", "https://example.org/"),
    ("https://example.org", "https://example.org/?"),
    ("https://example.org", "https://example.org/?utm_medium=x#top"),
    ("https://example.org/~me", "https://example.org/%7Eme"),
    ("https://example.org/%c3%bc", "https://example.org/ü"),
    ("https://example.org/%C3%BC", "https://example.org/ü"),
    ("https://example.org/a b", "https://example.org/a%20b"),
    ("https://bücher.example/", "https://xn--bcher-kva.example"),
    ("https://BÜCHER.example/", "https://bücher.example"),
    ("https://faß.example", "https://xn--fa-hia.example"),
    ("https://[2001:DB8::0:1]/", "https://[2001:db8::1]"),
    ("https://doi.org/10.1000/abc(1)2", "http://dx.doi.org/10.1000/ABC(1)2"),
    ("https://doi.org/10.1000/abc", "https://www.doi.org/10.1000%2FAbc"),
    ("https://doi.org/10.1000/abc", "https://DOI.org/10.1000/abc/"),
    ("https://doi.org/10.1000/abc", "doi:10.1000/ABC"),
    ("https://doi.org/10.1000/abc", " DOI: 10.1000/abc "),
    ("https://doi.org/10.1000/abc", "10.1000/abc"),
    ("https://doi.org/10.1000/abc", "info:doi/10.1000%2Fabc"),
    ("https://doi.org/10.1000/abc", "http://dx.doi.org/doi:10.1000/abc"),
    ("https://doi.org/10.1002/(sici)1<1::aid-x>3.0.co%3B2-%23", "doi:10.1002/(SICI)1<1::AID-X>3.0.CO;2-#"),
    ("file:///tmp/a.txt", "file://localhost/tmp/./a.txt#3"),
    ("file:///tmp/a%20b.txt", "FILE:///tmp/a b.txt"),
]

OTHER = [
    ("https://doi.org/10.1000/abc", "https://doi.org/10.1000/abd"),
    ("https://example.org/ABC", "https://example.org/abc"),
    (PAGE, "https://example.org/a/B?x=1&y=2"),
    (PAGE, "https://example.org/a/b?x=1&y=3"),
    (PAGE, "https://example.org/a/b?x=1"),
    (PAGE, "https://www.example.org/a/b?x=1&y=2"),
    (PAGE, "https://example.org:8080/a/b?x=1&y=2"),
    (PAGE, "https://example.org/b?x=1&y=2"),
    (PAGE, "https://example.org/a%2Fb?x=1&y=2"),
    ("https://example.org/?utm=1", "https://example.org/"),
    ("https://example.org/?ref=v2", "https://example.org/?ref=v3"),
    ("https://example.org/?a=1&a=2", "https://example.org/?a=1"),
    ("https://faß.example", "https://fass.example"),
    ("https://еxample.org", "https://example.org"),  # noqa: RUF001 -- the first letter is Cyrillic
    ("file:///tmp/a.txt", "file:///tmp/A.txt"),
    ("file:///tmp/a.txt", "https://tmp/a.txt"),
    ("file:///tmp/a%3Fb", "file:///tmp/a?b"),
]

NONE = [
    "",
    " \n",
    "example.org/page",
    "www.example.org",
    "not a url",
    "ftp://example.org/x",
    "javascript:alert(1)",
    "data:text/html,x",
    "mailto:me@example.org",
    "doi:182",
    "doi:10.1000",
    "pmid:12345678",
    "https://",
    "https:///path",
    "https:example.org",
    "https://exa mple.org",
    "https://exa%6dple.org",
    "https://-x.org",
    "https://x..org",
    "https://.",
    "https://example.org:port/",
    "https://example.org:99999/",
    "https://[::1/",
    "https://[::g]/",
    "https://[2001:db8::1].example.org/",
    "https://example.org.[::1]/",
    "https://example[::1]:80/",
    "https://[::1][::2]/",
    "https://me:secret@example.org/",
    "https://nature.com@evil.example/",
    "https://example.org/a\nb",
    "https://example.org/\x00",
    "https://example.org/\ud800",
    "https://" + "a" * 70 + ".org",
    "https://example.org/" + "a" * 9000,
    "https://example.org/" + "\u00e9" * 2000,
    "file:///" + "\u00e9" * 2000,
    "file://host/a",
    "file:relative",
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


def test_what_is_no_string_is_no_url():
    with pytest.raises(InputError, match="a URL is a string, not NoneType"):
        canonical_url(None)


def test_a_url_without_a_scheme_is_completed_by_the_message():
    with pytest.raises(InputError, match=r'write "https://www\.example\.org/x"'):
        canonical_url("www.example.org/x")


def test_a_password_is_not_in_the_message():
    with pytest.raises(InputError) as raised:
        canonical_url("https://me:hunter2@example.org/")
    assert "hunter2" not in str(raised.value)


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
    ("https://bbc.co.uk", "bbc.co.uk"),
    ("http://www.example.org:8080/x", "example.org"),
    ("https://alice.github.io", "github.io"),
    ("https://127.0.0.1/x", "127.0.0.1"),
    ("https://[::1]/x", "::1"),
    ("https://localhost/x", "localhost"),
    ("https://co.uk/", "co.uk"),
    ("https://www.bücher.de", "xn--bcher-kva.de"),
    ("file:///tmp/x", ""),
]


def test_the_domain_that_somebody_registered():
    for url, domain in DOMAINS:
        assert registrable_domain(url) == domain
