"""Crossref, the register of scholarly works with a DOI (https://api.crossref.org)."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from pydantic import Field

from nlp_retrieval.core import ContentCache, cache_folder, digest_of_key, given, may_set, parse_json
from nlp_retrieval.documents import clean_title
from nlp_retrieval.errors import FetchError
from nlp_retrieval.systems.evidence.citations.published import BaseWorkRegister, PublishedWork
from nlp_retrieval.systems.evidence.web_research.addresses import service_target, shown

_PUBLIC = "https://api.crossref.org"
_LARGEST = 8 * 2**20
_ROWS, _LONGEST_QUERY = 5, 400
_MOST_FAILURES, _SECONDS = 3, 30.0
_BUSY, _LONGEST_WAIT = (429, 503), 30.0
_RETRACTED = re.compile(
    r"\A\W*(?:retracted|withdrawn|removed|retracted article)(?: article)?\s*[:\]\u2013\u2014-]\W*", re.IGNORECASE
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")
_WITHDRAWS = ("retraction", "withdrawal", "removal")


class Crossref(BaseWorkRegister):
    """Asks Crossref about works, one request at a time.

    Answers are kept for the week in the user's cache folder. Nothing is sent but DOIs and the texts of entries. After three
    requests in a row without an answer no more are sent.

    Args:
        mailto: an address of yours, by which Crossref can reach you and answers sooner; it is sent with every request.
        url: of the service.
        pause: seconds between two requests.

    Raises:
        ConfigurationError: the address of the service is none, or holds a password or a key.

    Examples:
        >>> Crossref(mailto="me@example.org")
        Crossref(mailto='me@example.org')
    """

    name = "crossref"
    manifest_may_set = may_set("pause", url=given("send references to the server"), mailto=given("name the sender"))

    def __init__(
        self,
        mailto: Annotated[str, Field(pattern=r"^[^@\s]{1,64}@[^@\s]{1,200}$")] | None = None,
        url: str = _PUBLIC,
        pause: Annotated[float, Field(ge=0, le=60)] = 1.0,
    ) -> None:
        self._target = service_target(url, type(self).__name__)
        self.mailto, self.url, self.pause = mailto, url, pause
        self._cache = ContentCache(cache_folder() / "crossref", ".json", "answers of Crossref", durable=False)
        self._failures, self._last = 0, 0.0

    def of_doi(self, doi: str) -> PublishedWork | None:
        path = f"/works/{quote(doi, safe='')}"
        message = self._message(path)
        if message is not None:
            return _work(message)
        agency = (self._message(f"{path}/agency") or {}).get("agency")
        if agency is None:
            return None
        label = clean_title(str(agency.get("label") if isinstance(agency, dict) else agency))
        raise FetchError(f"the DOI {shown(doi)} is registered with {label or 'another agency'}, which was not asked")

    def matching(self, entry: str) -> Sequence[PublishedWork]:
        message = self._message("/works", {"query.bibliographic": entry[:_LONGEST_QUERY], "rows": str(_ROWS)})
        works = message.get("items") if message is not None else None
        if not isinstance(works, list):
            raise FetchError(f"{self._target.site} gave an answer without a list of works; is it Crossref?")
        return [_work(work) for work in works[:_ROWS] if isinstance(work, dict)]

    def _message(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any] | None:
        """Return what the service says; None if it has no such work."""
        digest = digest_of_key([self.url, path, query, list(date.today().isocalendar()[:2])])
        kept = self._cache.find(digest)
        body = self._answer(path, query) if kept is None else kept
        try:
            content = parse_json(body, max_bytes=_LARGEST) if body else {"message": None}
        except ValueError as error:
            raise FetchError(f"{self.url} gave an answer that is not JSON ({shown(str(error))}); is it Crossref?") from None
        message = content.get("message", ()) if isinstance(content, dict) else ()
        if message is not None and not isinstance(message, dict):
            raise FetchError(f'{self.url} gave JSON without a "message"; is it Crossref?')
        if kept is None:
            self._cache.keep(digest, body)
        return message

    def _answer(self, path: str, query: Mapping[str, str] | None) -> bytes:
        """Return the body of an answer; an empty one if there is no such work."""
        from nlp_retrieval.systems.evidence.web_research.connections import Deadline, ask_web

        asked = urlencode({**(query or {}), **({"mailto": self.mailto} if self.mailto else {})})
        target = self._target.at(self._target.path.rstrip("/") + path + (f"?{asked}" if asked else ""))
        if self._failures >= _MOST_FAILURES:
            raise FetchError(f"{target.site} failed {_MOST_FAILURES} times in a row, and was not asked again")
        self._failures += 1
        for may_wait in (True, False):
            time.sleep(max(0.0, self._last + self.pause - time.monotonic()))
            try:
                answer = ask_web(target, Deadline(_SECONDS), _LARGEST, "application/json", private=self.url != _PUBLIC)
            finally:
                self._last = time.monotonic()
            if answer.status not in _BUSY or not may_wait:
                break
            wait = answer.headers.get("retry-after", "")
            time.sleep(min(float(wait) if wait.isascii() and wait.isdigit() else 5 * self.pause, _LONGEST_WAIT))
        if answer.status not in (200, 404) or (answer.status == 200 and not answer.body):
            raise FetchError(f"{target.site} answered with status {answer.status} and no work; try again later")
        self._failures = 0
        return answer.body if answer.status == 200 else b""


def _work(record: dict[str, Any]) -> PublishedWork:
    """Return a work by its record; what has another form than documented is left out."""
    authors = [author.get("family") for author in _list(record.get("author")) if isinstance(author, dict)]
    dates = (record.get(name) for name in ("issued", "published", "published-print", "published-online"))
    days = [day for each in dates if isinstance(each, dict) for day in map(_list, _list(each.get("date-parts"))) if day]
    notices = [notice.get("type") for notice in _list(record.get("updated-by")) if isinstance(notice, dict)]
    title = _first_line(record.get("title"))
    return PublishedWork(
        shown(str(record.get("DOI", ""))),
        _RETRACTED.sub("", title),
        _first_line(record.get("subtitle")),
        tuple(clean_title(name) for name in authors if isinstance(name, str)),
        tuple(dict.fromkeys(day[0] for day in days if isinstance(day[0], int))),
        bool(_RETRACTED.match(title)) or any(notice in _WITHDRAWS for notice in notices),
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _first_line(value: object) -> str:
    """Return the first of some titles, without the tags of formulas and italics."""
    first = next((title for title in _list(value) if isinstance(title, str)), "")
    return clean_title(html.unescape(_TAG.sub("", first)))
