"""Canonical forms of URLs, the same for all URLs of a page, and registrable domains.

Pages have http and https URLs, documents of a disk file URLs; a DOI stands for its URL at doi.org.

http counts as https; parameters that only track visitors, fragments (but for ``#/route`` and ``#!route``), dot segments and
slashes at the end are dropped. Paths, queries and "www." are left as they are: they may name different pages. Only public
suffixes of registries count for domains, so that one person with many free sites does not count as many.
"""

from __future__ import annotations

import ipaddress
import os
import re
import unicodedata
from urllib.parse import SplitResult, quote, unquote, unquote_to_bytes, urlsplit

from nlp_retrieval.errors import DependencyError, InputError, install
from nlp_retrieval.text import printable, registered_name

MAX_URL = 8192
"""The longest URL, in characters; browsers and servers accept less."""

_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*")
_IN_BRACKETS = re.compile(r"\[[^\[\]]*\](:\d*)?")
"""A host that is an IPv6 address; of other brackets, Python would read what they hold as the host."""
_ROUTES = ("/", "!")
_BARE = re.compile(r"(?:www\.)?[\w-]+(?:\.[\w-]+)+(?:[/?#].*)?", re.DOTALL)
_DOI = re.compile(
    r"(?:doi:?\s{0,5}|info:doi/|urn:doi:|(?:dx\.|www\.)?doi\.org/)?(10\.[0-9]{4,9}(?:\.[0-9]{1,9}){0,5}(?:/|%2f)\S+)",
    re.IGNORECASE,
)
_DOI_HOSTS = frozenset(("doi.org", "dx.doi.org", "www.doi.org"))
_SAFE_IN_FILES = "/!$&'()*+,;=:@~"
_TRACKING = frozenset(
    """
    gclid gclsrc dclid gbraid wbraid fbclid msclkid yclid twclid ttclid li_fat_id igshid igsh mc_cid mc_eid _hsenc _hsmi
    __hstc __hssc __hsfp hsctatracking mkt_tok oly_anon_id oly_enc_id vero_id vero_conv wickedid ref_src ref_url s_cid cmpid
    _ga _gl _ke srsltid epik rb_clickid
    """.split()
)
_TRACKING_PREFIXES = ("utm_", "pk_", "mtm_", "piwik_", "matomo_")


def canonical_url(url: str) -> str:
    """Return the form that all URLs of one page share, with a DOI as its address at doi.org; an ``InputError`` for no URL."""
    parts = _split(url)
    canonical = _file(parts, url) if parts.scheme == "file" else _page(parts, url)
    if len(canonical) > MAX_URL:  # or it would not be a valid URL itself
        raise _refused(url, f"percent-encoded it has {len(canonical):,} characters, and at most {MAX_URL:,} are allowed")
    return canonical


def canonical_or_empty(url: str) -> str:
    """Return the canonical form of a URL; empty for what is none, under which there is no source."""
    try:
        return canonical_url(url)
    except InputError:
        return ""


def registrable_domain(url: str) -> str:
    """Return the registrable domain of a page, "bbc.co.uk" for "https://news.bbc.co.uk/1"; empty for a file."""
    parts = urlsplit(canonical_url(url))
    return registered_name(parts.hostname or "") if parts.scheme == "https" else ""


def resolved_doi(url: str) -> str:
    """Return the URL at doi.org of a DOI (``doi:10.1000/182``, ``10.1000/182``), and anything else stripped of white space."""
    text = url.strip()
    match = _DOI.fullmatch(text)
    return f"https://doi.org/{quote(unquote(match[1]), safe=_SAFE_IN_FILES)}" if match else text


def _split(url: str) -> SplitResult:
    if not isinstance(url, str):
        raise InputError(f"a URL is a string, not {type(url).__name__}")
    text = url.strip()
    if not text:
        raise InputError("no URL is given; every source needs the URL under which it is cited")
    if len(text) > MAX_URL:
        raise _refused(url, f"it has {len(text):,} characters, and at most {MAX_URL:,} are allowed")
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text):
        raise _refused(url, "it holds a control character, a line end or half of a character")
    text = resolved_doi(text)
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise _refused(url, str(error)) from None
    if "[" in parts.netloc and not _IN_BRACKETS.fullmatch(parts.netloc):
        raise _refused(url, "there are brackets in its host, and not around it")
    if parts.scheme not in ("http", "https", "file"):
        cure = f'write "https://{text}"' if _BARE.fullmatch(text) else "it must begin with http://, https:// or file:///"
        raise _refused(url, cure)
    if "@" in parts.netloc:
        raise _refused(url.partition("//")[0] + "//...", "it holds a user name; remove everything before the @")
    return parts


def _page(parts: SplitResult, url: str) -> str:
    try:
        from w3lib.url import canonicalize_url
    except ImportError:
        raise DependencyError(f"comparing URLs needs w3lib: {install('evidence')}") from None
    try:
        port = parts.port
    except ValueError as error:
        raise _refused(url, str(error)) from None
    host = _host(parts.hostname or "", url)
    where = host if port in (None, 80, 443) else f"{host}:{port}"
    query = f"?{parts.query}" if parts.query else ""
    clean = urlsplit(canonicalize_url(f"https://{where}{parts.path or '/'}{query}"))
    if where in _DOI_HOSTS:
        path = unquote(clean.path).lower().removeprefix("/doi:").lstrip("/")
        where, clean = "doi.org", clean._replace(path=f"/{quote(path, safe=_SAFE_IN_FILES)}")
    kept = [part for part in clean.query.split("&") if part and not _tracks(part)]
    # w3lib needs a second pass if a character that needs no escape was escaped twice, and so on
    return f"https://{where}{_path(clean.path)}" + (f"?{'&'.join(sorted(kept))}" if kept else "") + _route(parts.fragment)


def _route(fragment: str) -> str:
    """Return a fragment that names a page of its own, as in single-page applications; empty for a place in a page."""
    route = unquote(fragment)
    if not route.startswith(_ROUTES) or not route.strip("!/"):
        return ""
    return f"#{quote(route.rstrip('/') if route.startswith('/') else route, safe=_SAFE_IN_FILES + '?')}"


def _host(host: str, url: str) -> str:
    """Return a host in one spelling."""
    host = host.removesuffix(".")
    if not host.isascii():
        try:
            import idna

            host = idna.encode(host, uts46=True).decode().removesuffix(".")
        except ImportError:
            raise DependencyError(f"comparing URLs needs idna: {install('evidence')}") from None
        except (idna.IDNAError, UnicodeError) as error:
            raise _refused(url, f"its host is not a domain name ({error})") from None
    if ":" in host:
        try:
            return f"[{ipaddress.IPv6Address(host.partition('%')[0]).compressed}]"
        except ValueError as error:
            raise _refused(url, str(error)) from None
    if not _HOST.fullmatch(host):
        raise _refused(url, "its host is not a domain name" if host else "it has no host")
    return host


def _path(path: str) -> str:
    """Return a path without dot segments and slashes at its end."""
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept).rstrip("/")


def _tracks(parameter: str) -> bool:
    name = unquote(parameter.partition("=")[0]).lower()
    return name in _TRACKING or name.startswith(_TRACKING_PREFIXES)


def _file(parts: SplitResult, url: str) -> str:
    path = unquote_to_bytes(parts.path).decode("utf-8", "surrogateescape")  # names of files are bytes
    if parts.hostname not in (None, "localhost") or not path.startswith("/"):
        raise _refused(url, "a file URL is file:/// and the whole path")
    if "\0" in path:
        raise _refused(url, "it holds a null character, which no name of a file has")
    query = f"?{quote(parts.query, safe='%' + _SAFE_IN_FILES)}" if parts.query else ""
    return f"file://{quote(os.fsencode(_path(path)), safe=_SAFE_IN_FILES)}{query}"


def _refused(url: str, why: str) -> InputError:
    shown = printable(url if len(url) <= 100 else f"{url[:97]}...")
    return InputError(f"{shown!r} is not a URL of a source: {why}")
