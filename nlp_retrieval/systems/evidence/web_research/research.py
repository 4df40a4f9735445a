"""From a subquestion to passages: search the web for it and for its hypothetical answer, read the pages, search the index."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten
from typing import Literal, get_args

from nlp_retrieval import HyDE
from nlp_retrieval.core import check_k, has_no_words, progress
from nlp_retrieval.documents import clean_title, read_document
from nlp_retrieval.errors import DependencyError, FetchError, FetchRefusedError, IndexStateError, QueryError, RetrievalError
from nlp_retrieval.processors import ExpandedQuery
from nlp_retrieval.systems.evidence.grades import assess_source_quality
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.store import SourceDocument
from nlp_retrieval.systems.evidence.index.urls import canonical_url
from nlp_retrieval.systems.evidence.web_research.addresses import shown
from nlp_retrieval.systems.evidence.web_research.fetching import BaseFetcher, Fetch, fetch_page
from nlp_retrieval.systems.evidence.web_research.searching import BaseWebSearch, Search, WebResult, find_pages, merged_by_rank

PageStatus = Literal["added", "known", "refused", "failed"]
"""``added``: a new source, or a new version of one. ``known``: the index has it. ``refused``: by a rule, of ours or of its
site. ``failed``: it could not be fetched or read."""


@dataclass(frozen=True)
class ResearchedPage:
    """Result for a page: its address and status, the reason for it, and where it was read, as the index has it."""

    url: str
    status: PageStatus
    reason: str = ""
    source_url: str = ""
    title: str = ""
    quality: str = ""


@dataclass(frozen=True)
class ResearchReport:
    """The result of :func:`~nlp_retrieval.systems.evidence.web_research.research.research`.

    Args:
        subquestion: its text.
        expansion: its hypothetical answer, and both together; None without HyDE.
        failures: of searches that were not answered.
        pages: result for each, in the order of processing.
        unread: number of other pages found, which were not processed because there were enough.
        passages: of the whole index, best first.

    Examples:
        >>> url, page = "https://example.org/krill", "Krill live in swarms."
        >>> report = research("Where do krill live?", index, lambda query, k: [url], lambda url: page)
        >>> report.counts()
        {'added': 1, 'known': 0, 'refused': 0, 'failed': 0}
    """

    subquestion: str
    expansion: ExpandedQuery | None
    failures: list[str]
    pages: list[ResearchedPage]
    unread: int
    passages: list[EvidencePassage]

    def counts(self) -> dict[str, int]:
        """Return the number of pages by status."""
        return {status: sum(page.status == status for page in self.pages) for status in get_args(PageStatus)}


_DELETED = "it was deleted from this project; add it again with the add command"
_RESULTS = 10
LONGEST_QUERY = 200
"""Characters of a hypothetical answer that are sent to a search engine; it is cut between words."""


def research(
    subquestion: str,
    index: EvidenceIndex,
    web_search: BaseWebSearch | Search,
    fetcher: BaseFetcher | Fetch,
    hyde: HyDE | None = None,
    *,
    pages: int = 10,
    k: int = 10,
) -> ResearchReport:
    """Find pages about a subquestion, add them to an index, and search it.

    The web is searched for the subquestion, and with HyDE for its hypothetical answer too; both lists are merged by reciprocal
    rank. A page is cited and graded by the address at which it was read, after redirects. A source that was deleted from the
    index is not added again.

    Args:
        subquestion: one question.
        index: for the pages.
        web_search: finds them: a component, or a function of a query and a number of results that returns addresses.
        fetcher: fetches them: a component, or a function of an address that returns the text.
        hyde: writes the hypothetical answer; by default there is none.
        pages: the most pages that are fetched.
        k: at most this many passages.

    Raises:
        QueryError: the subquestion has no content words, or a number is less than 1.
        FetchError: no search was answered.
        DependencyError: a package is missing.
        IndexStateError: the index cannot be written to, or is damaged.

    Examples:
        >>> url, page = "https://example.org/krill", "Krill live in swarms."
        >>> report = research("Where do krill live?", index, lambda query, k: [url], lambda url: page, k=1)
        >>> [page.status for page in report.pages], report.passages[0].url
        (['added'], 'https://example.org/krill')
    """
    if not isinstance(subquestion, str) or has_no_words(subquestion):
        raise QueryError("the subquestion has no content words; write one question")
    check_k(pages, "pages")
    check_k(k)
    expansion = hyde.expand([subquestion])[0] if hyde is not None else None
    written = "" if expansion is None else expansion.hypothetical
    hypothetical = shorten(written, LONGEST_QUERY, placeholder="")
    lists, failures = _searched(web_search, list(dict.fromkeys(filter(None, (subquestion, hypothetical)))))
    merged = merged_by_rank(lists, lambda result: canonical_url(result.url))
    done: list[ResearchedPage] = []
    fetched = 0
    with progress("reading", min(pages, len(merged))) as advance:
        for result in merged:
            if fetched == pages:
                break
            known = _known(index, result)
            done.append(known or _read(index, fetcher, result))
            fetched += known is None
            advance(int(known is None))
    index.build_index()
    asked = dict.fromkeys([subquestion, *([expansion.expanded] if expansion is not None else [])])
    passages = merged_by_rank(index.search_all(list(asked), k), lambda passage: (passage.key, passage.start, passage.end))
    return ResearchReport(subquestion, expansion, failures, done, len(merged) - len(done), passages[:k])


def _searched(web_search: BaseWebSearch | Search, queries: list[str]) -> tuple[list[list[WebResult]], list[str]]:
    """Return the results of each answered query, and why others were not answered."""
    lists, errors = [], {}
    for query in queries:
        try:
            lists.append(find_pages(web_search, query, _RESULTS))
        except FetchError as error:
            errors[query] = error
    if not lists:
        raise next(iter(errors.values()))
    return lists, [f"the search for {query!r} failed: {error}" for query, error in errors.items()]


def _known(index: EvidenceIndex, result: WebResult) -> ResearchedPage | None:
    """Return the result for a page that need not be fetched; None for one that must be."""
    if index.was_deleted(result.url):
        return ResearchedPage(result.url, "refused", _DELETED, title=result.title)
    source = index.source(result.url)
    if source is None:
        return None
    since = f", fetched {source.fetch_date}" if source.fetch_date else ""
    return ResearchedPage(result.url, "known", f"the index has it{since}", source.url, source.title)


def _read(index: EvidenceIndex, fetcher: BaseFetcher | Fetch, result: WebResult) -> ResearchedPage:
    """Fetch, read and add a page; whatever is wrong with it must not stop the others."""
    source_url, title = "", result.title
    try:
        page = fetch_page(fetcher, result.url)
        read = read_document(page.content, name=page.url, media_type=page.media_type)
        source_url, title = page.url, clean_title(read.title or page.title) or result.title
        if index.was_deleted(page.url):
            return ResearchedPage(result.url, "refused", _DELETED, source_url, title)
        quality = assess_source_quality(page.url)
        added = index.add_source(SourceDocument(read.text, page.url, title, quality, page.fetch_date))
    except (DependencyError, IndexStateError):
        raise
    except RetrievalError as error:
        status: PageStatus = "refused" if isinstance(error, FetchRefusedError) else "failed"
        return ResearchedPage(result.url, status, str(error), source_url, title)
    except Exception as error:  # of somebody else's fetcher or a parser
        reason = f"unexpected {type(error).__name__}: {shown(str(error))}"
        return ResearchedPage(result.url, "failed", reason, source_url, title)
    if not added:
        return ResearchedPage(result.url, "known", "the index has this text under this address", source_url, title)
    return ResearchedPage(result.url, "added", "", source_url, title, quality)
