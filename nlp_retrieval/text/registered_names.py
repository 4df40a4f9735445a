"""Registered names of hosts, by the public suffixes of registries."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from nlp_retrieval.errors import DependencyError, install

if TYPE_CHECKING:
    from tldextract import TLDExtract


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
