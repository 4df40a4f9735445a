"""From a subquestion to passages: search the web for it and for its hypothetical answer, read the pages, search the index.

Text of pages, search engines and models is only data: it is read, stored and searched, but not followed. A page that cannot be
fetched or read does not stop the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from nlp_retrieval import HyDE
from nlp_retrieval.core import check_k, has_no_words, progress
from nlp_retrieval.errors import (
    DependencyError,
    FetchError,
    FetchRefusedError,
    IndexStateError,
    InputError,
    QueryError,
    RetrievalError,
)
from nlp_retrieval.processors import ExpandedQuery
from nlp_retrieval.systems.evidence.grades import QualityRules, assess_source_quality
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.index.passages import EvidencePassage
from nlp_retrieval.systems.evidence.index.urls import canonical_url
from nlp_retrieval.systems.evidence.reading.cleaning import clean_title
from nlp_retrieval.systems.evidence.reading.document import SourceDocument
from nlp_retrieval.systems.evidence.reading.text_of import read_bytes
from nlp_retrieval.systems.evidence.web_research.addresses import shown
from nlp_retrieval.systems.evidence.web_research.fetching import BaseFetcher
from nlp_retrieval.systems.evidence.web_research.searching import BaseWebSearch, WebResult, merged_by_rank

PageStatus = Literal["added", "known", "refused", "failed"]
"""``added``: a new source, or a new version of one. ``known``: the index has it. ``refused``: by a rule, of ours or of its
site. ``failed``: it could not be fetched or read."""


@dataclass(frozen=True)
class WebQuery:
    """A query to a search engine.

    Args:
        query: its text.
        count: number of pages found.
        error: why there was no answer; else empty.
    """

    query: str
    count: int
    error: str = ""


@dataclass(frozen=True)
class ResearchedPage:
    """Result for a page.

    Args:
        url: from the search engine.
        status: one of :data:`PageStatus`.
        reason: for the status; empty for an added page.
        source_url: the address at which it was read and is cited; empty if it was not read.
        title: of the page, or from the search engine.
        quality: its grade in the index; empty if it was not added.
    """

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
        queries: to the search engine.
        pages: result for each, in the order of processing.
        unread: number of other pages found, which were not processed because there were enough.
        passages: of the whole index, best first.

    Examples:
        >>> report = research("Where do krill live?", index, FolderSearch("pages"), FolderFetcher("pages"))
        >>> report.counts()
        {'added': 1, 'known': 0, 'refused': 0, 'failed': 0}
    """

    subquestion: str
    expansion: ExpandedQuery | None
    queries: list[WebQuery]
    pages: list[ResearchedPage]
    unread: int
    passages: list[EvidencePassage]

    def counts(self) -> dict[str, int]:
        """Return the number of pages by status."""
        counted = Counter(page.status for page in self.pages)
        return {status: counted[status] for status in ("added", "known", "refused", "failed")}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


LONGEST_QUERY = 200
"""Characters of a hypothetical answer that are sent to a search engine; it is cut between words."""


def research(
    subquestion: str,
    index: EvidenceIndex,
    web_search: BaseWebSearch,
    fetcher: BaseFetcher,
    hyde: HyDE | None = None,
    *,
    results: int = 10,
    pages: int = 10,
    k: int = 10,
    rules: QualityRules | str | Path | None = None,
    refetch: bool = False,
) -> ResearchReport:
    """Find pages about a subquestion, add them to an index, and search it.

    The web is searched for the subquestion, and with HyDE for its hypothetical answer too; both lists are merged by reciprocal
    rank, each page once. The first ones that the index lacks are fetched, read, graded by the rules and added one by one;
    then the index is built and searched, with HyDE for the subquestion together with the hypothetical answer as well.

    A page is cited by the address at which it was read, after redirects, and graded by it: the address of a redirect says
    nothing about its target. A source that was deleted from the index is not added again.

    Args:
        subquestion: one question.
        index: for the pages.
        web_search: finds them.
        fetcher: fetches them.
        hyde: writes the hypothetical answer; by default there is none.
        results: the most results of each search.
        pages: the most pages that are fetched.
        k: at most this many passages.
        rules: of grades, as for :func:`~nlp_retrieval.systems.evidence.grades.assess_source_quality`.
        refetch: whether pages that the index has are fetched again, as they may have changed.

    Returns:
        The result for each page, and the passages.

    Raises:
        QueryError: the subquestion has no content words, or a number is less than 1.
        FetchError: no search was answered.
        DependencyError: a package is missing.
        IndexStateError: the index cannot be written to, or is damaged.

    Examples:
        >>> report = research("Where do krill live?", index, FolderSearch("pages"), FolderFetcher("pages"), k=1)
        >>> [page.status for page in report.pages], report.passages[0].url
        (['added'], 'https://example.org/krill.html')
    """
    if not isinstance(subquestion, str) or has_no_words(subquestion):
        raise QueryError("the subquestion has no content words; write one question")
    for value, name in ((results, "results"), (pages, "pages"), (k, "k")):
        check_k(value, name)
    grading = QualityRules.read(rules) if isinstance(rules, str | Path) else rules
    expansion = hyde.expand([subquestion])[0] if hyde is not None else None
    lists, queries = _searched(web_search, _web_queries(subquestion, expansion), results)
    pages_found = merged_by_rank(lists, lambda result: canonical_url(result.url))
    reader = _PageReader(index, fetcher, grading, refetch)
    done: list[ResearchedPage] = []
    fetched = looked_at = 0
    with progress("reading", min(pages, len(pages_found))) as advance:
        for result in pages_found:
            if fetched == pages:
                break
            looked_at += 1
            known = reader.known(result)
            done.append(known if known is not None else reader.read(result))
            fetched += known is None
            advance(int(known is None))
    index.build_index()
    passages = _passages(index, subquestion, expansion, k)
    return ResearchReport(subquestion, expansion, queries, done, len(pages_found) - looked_at, passages)


def _web_queries(subquestion: str, expansion: ExpandedQuery | None) -> list[str]:
    hypothetical = _cut(expansion.hypothetical) if expansion is not None else ""
    return list(dict.fromkeys(filter(None, (subquestion, hypothetical))))


def _cut(text: str) -> str:
    """Return the beginning of a text, cut between words; in a text without spaces, between characters."""
    words = " ".join(text.split())
    if len(words) <= LONGEST_QUERY:
        return words
    beginning = words[: LONGEST_QUERY + 1]
    return beginning.rpartition(" ")[0] or words[:LONGEST_QUERY]


def _searched(web_search: BaseWebSearch, queries: list[str], results: int) -> tuple[list[list[WebResult]], list[WebQuery]]:
    """Return the results of each answered query, and all queries."""
    lists, asked, errors = [], [], []
    for query in queries:
        try:
            lists.append(web_search.search(query, results))
        except FetchError as error:
            errors.append(error)
            asked.append(WebQuery(query, 0, str(error)))
        else:
            asked.append(WebQuery(query, len(lists[-1])))
    if not lists:
        raise errors[0]
    return lists, asked


@dataclass(frozen=True)
class _PageReader:
    """Reads pages into an index."""

    index: EvidenceIndex
    fetcher: BaseFetcher
    rules: QualityRules | None
    refetch: bool

    def known(self, result: WebResult) -> ResearchedPage | None:
        """Return the result for a page that need not be fetched; None for one that must be."""
        if self.index.was_deleted(result.url):
            return ResearchedPage(result.url, "refused", _DELETED, title=result.title)
        source = None if self.refetch else self.index.source(result.url)
        if source is None:
            return None
        since = f", fetched {source.fetch_date}" if source.fetch_date else ""
        return ResearchedPage(result.url, "known", f"the index has it{since}", source.url, source.title)

    def read(self, result: WebResult) -> ResearchedPage:
        """Fetch, read and add a page."""
        try:
            document = self._document(result.url)
        except (DependencyError, IndexStateError):
            raise
        except RetrievalError as error:
            status: PageStatus = "refused" if isinstance(error, FetchRefusedError) else "failed"
            return ResearchedPage(result.url, status, str(error), title=result.title)
        except Exception as error:
            # any error of a third-party fetcher or a parser: one page must not stop the others
            reason = f"unexpected {type(error).__name__}: {shown(str(error))}"
            return ResearchedPage(result.url, "failed", reason, title=result.title)
        return self._added(result, document)

    def _added(self, result: WebResult, document: SourceDocument) -> ResearchedPage:
        title = document.title or result.title
        if self.index.was_deleted(document.url):
            return ResearchedPage(result.url, "refused", _DELETED, document.url, title)
        try:
            added = self.index.add_source(replace(document, title=title))
        except InputError as error:
            return ResearchedPage(result.url, "failed", str(error), document.url, title)
        if not added:
            return ResearchedPage(result.url, "known", "the index has this text under this address", document.url, title)
        return ResearchedPage(result.url, "added", "", document.url, title, document.quality)

    def _document(self, url: str) -> SourceDocument:
        page = self.fetcher.fetch(url)
        read = read_bytes(page.content, name=page.url, media_type=page.media_type)
        quality = assess_source_quality(page.url, self.rules)
        title = clean_title(read.title)[0]
        return SourceDocument(read.text, page.url, title, quality, page.fetch_date)


_DELETED = "it was deleted from this project; add it again with the add command"


def _passages(index: EvidenceIndex, subquestion: str, expansion: ExpandedQuery | None, k: int) -> list[EvidencePassage]:
    queries = dict.fromkeys([subquestion, *([expansion.expanded] if expansion is not None else [])])
    lists = [index.search(query, k) for query in queries]
    return merged_by_rank(lists, lambda passage: (passage.key, passage.start, passage.end))[:k]
