"""Hosts in addresses, and their registered names, by the public suffixes of registries."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from nlp_retrieval.errors import DependencyError, install

if TYPE_CHECKING:
    from tldextract import TLDExtract

_BRACKETED = re.compile(r"\[[^\[\]]*\](:\d*)?")


def has_other_brackets(netloc: str) -> bool:
    """Return whether there are brackets other than those around the whole host; Python would read what they hold as the host.

    Args:
        netloc: of an address, as ``urlsplit`` gives it.

    Examples:
        >>> has_other_brackets("[::1]:8080"), has_other_brackets("exa[mple.org")
        (False, True)
    """
    return ("[" in netloc or "]" in netloc) and _BRACKETED.fullmatch(netloc) is None


def registered_name(host: str) -> str:
    """Return the registered name with its public suffix; the host itself if it has none.

    Args:
        host: in lower case, without a dot at its end.

    Raises:
        DependencyError: tldextract is not installed.

    Examples:
        >>> registered_name("news.bbc.co.uk")
        'bbc.co.uk'
    """
    return _suffixes()(host).top_domain_under_public_suffix or host


@cache
def _suffixes() -> TLDExtract:
    try:
        from tldextract import TLDExtract
    except ImportError:
        raise DependencyError(f"registered names need tldextract: {install('evidence')}") from None
    return TLDExtract(cache_dir=None, suffix_list_urls=())  # the list in the package, without network or files
