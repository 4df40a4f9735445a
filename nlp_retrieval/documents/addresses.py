"""Addresses of pages in plain text: URLs, and names of pages such as ``doi:10.1000/x`` and ``arXiv:2101.00001``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

NOT_IN_ADDRESSES = r"\s<>\"`{}|\\^\[\]\uff08\uff09【】「」『』《》\uff0c。、\uff1b"
_TRAILING = ".,;:!?*_~'\u2019\u201d)"
_WEB = re.compile(r"https?://[^\s/]|file:///[^\s]", re.IGNORECASE)
_WRAPPED = re.compile(
    r"https?://(?:www\.google\.[a-z.]{2,6}/url|[a-z0-9]{1,10}\.safelinks\.protection\.outlook\.com/)\?"
    r"(?:[^#&=]{1,20}=[^#&]{0,500}&){0,5}(?:q|url)=(https?(?::|%3A)[^&#\s]{3,4000})",
    re.IGNORECASE,
)
"""Addresses that Google Docs and Outlook put around those of links."""

_REST = rf"[^{NOT_IN_ADDRESSES}]"
_ADDRESS = re.compile(
    rf"(?=htt|doi|www|dx\.|arx|abs|pm[ic])(?:(?<![a-z0-9])(?P<url>https?://{_REST}{{1,4000}})"
    rf"|(?<![\w./@-])(?:doi ?[:=]? ?|(?:(?:www|dx)\.)?doi\.org/)(?P<doi>10\.[0-9]{{4,9}}/{_REST}{{1,500}})"
    r"|(?:\barxiv(?: (?:e-?)?preprints?)? ?:? ?(?:arxiv: ?)?|(?<![\w./])abs/)"
    r"(?P<arxiv>(?:[a-z-]{2,20}(?:\.[a-z]{2})?/[0-9]{7}|[0-9]{4}\.[0-9]{4,5})(?:v[0-9]{1,2})?)"
    rf"|(?<![\w./@-])(?P<site>(?:arxiv\.org/|www\.{_REST}){_REST}{{2,2000}})"
    r"|\bPMID ?: ?(?P<pubmed>[0-9]{1,9})\b|\b(?P<central>PMC[0-9]{5,9})\b)",
    re.IGNORECASE,
)


def trimmed(url: str) -> str:
    """Return an address without the punctuation after it; a bracket that it opens itself belongs to it."""
    end = len(url)
    surplus = url.count(")") - url.count("(")
    while end > 3 and url[end - 1] in _TRAILING:
        if url[end - 1] == ")":
            if surplus <= 0:
                break
            surplus -= 1
        end -= 1
    return url[:end]


def web_address(url: str) -> str:
    """Return a text as the address of a page on the web, or of a file; empty if it is none.

    Examples:
        >>> web_address("doi:10.1000/182")
        'https://doi.org/10.1000/182'
    """
    if wrapped := _WRAPPED.match(url):
        return unquote(wrapped[1])
    if _WEB.match(url):
        return url
    match = _ADDRESS.match(url.strip())
    return _page_of(match) if match is not None else ""


def _page_of(match: re.Match[str]) -> str:
    if match["doi"]:
        return "https://doi.org/" + trimmed(match["doi"])
    if match["arxiv"]:
        return "https://arxiv.org/abs/" + match["arxiv"]
    if match["pubmed"]:
        return f"https://pubmed.ncbi.nlm.nih.gov/{match['pubmed']}"
    if match["central"]:
        return f"https://pmc.ncbi.nlm.nih.gov/articles/{match['central'].upper()}"
    return trimmed(match["url"] or "https://" + match["site"])


def plain_links(text: str) -> Iterator[tuple[str, str]]:
    """Yield the stretches of plain text, each with an empty URL, and the addresses and names of pages in it, as URLs alone."""
    begin = 0
    for match in _ADDRESS.finditer(text):
        if match.start() > begin:
            yield text[begin : match.start()], ""
        yield "", _page_of(match)
        begin = match.start() + len(trimmed(match[0]))
    if begin < len(text):
        yield text[begin:], ""
