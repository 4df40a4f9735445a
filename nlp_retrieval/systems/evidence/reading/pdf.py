"""Reading the title and plain text of a PDF; for a child process with limits, since a PDF can keep a parser busy for ever.

Text that a PDF draws invisibly is read as well, since scans draw their recognised text like that.
"""

from __future__ import annotations

import re
from collections import Counter
from io import BytesIO
from typing import TYPE_CHECKING

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.systems.evidence.reading.document import LARGEST_TEXT, MOST_PAGES, ReadText, Removed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pypdf import PageObject, PdfReader

__all__ = ["join_lines", "read_pages", "read_pdf"]

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_HYPHEN = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")
_INNER_LINE_END = re.compile(r"\n(?![•‣◦▪●·] ?)")
_SENTENCE_END = (".", "!", "?", ":", '."', ".”", ".)", "。")
_GOES_ON = re.compile(r"[\w,;]\Z|(?<=[^\W\d_])-\Z")
_NUMBER = re.compile(
    r"\s{0,80}(?:[-\u2013\u2014] ?|page )?([0-9]{1,4})(?: ?[-\u2013\u2014]| (?:of|/) [0-9]{1,4})?\s{0,80}", re.IGNORECASE
)
_RAISED = re.compile(r"[0-9]{1,3}(?: ?[,\u2013-] ?[0-9]{1,3}){0,9},?")
_RAISED_DIGITS = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_SMALL = 0.87
"""Share of the size of the text that a raised number has at most."""

_FEWEST_NUMBERED = 2
"""Pages that must have printed numbers."""

_SHORT = 0.75
"""A line shorter than this share of the longest ones ends a paragraph if it ends a sentence."""


def read_pdf(data: bytes, where: str) -> ReadText:
    """Return the title and the text of a PDF, its pages separated by blank lines.

    Raises:
        SourceError: it is damaged, encrypted, unpacks to far more than is usual, has too many pages, or holds no text.
    """
    title, pages, unread = read_pages(data, where)
    text, starts, removed = _joined(pages)
    if not text:
        raise SourceError(
            f"{where}: {len(pages):,} pages without any text, as of a scan; recognise the text first (ocrmypdf in.pdf out.pdf)"
        )
    title, removed_there = clean_title(title)
    return ReadText(title, text, removed + removed_there, unread, pages=starts)


def read_pages(data: bytes, where: str, *, raised: bool = False) -> tuple[str, list[str], int]:
    """Return the title of a PDF, its pages as printed lines, and the number of pages that could not be read, which are empty.

    Args:
        data: the bytes of the PDF.
        where: its name, for messages.
        raised: whether numbers that are printed small and raised become raised digits.

    Raises:
        SourceError: it is damaged, encrypted, unpacks to far more than is usual, or has too many pages.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError as NoCipher
    from pypdf.errors import FileNotDecryptedError, LimitReachedError

    try:
        return _title_and_pages(PdfReader(BytesIO(data)), where, _text_with_raised if raised else _text_of)
    except (FileNotDecryptedError, NoCipher):
        raise SourceError(f"{where}: the PDF is encrypted; save it without a password") from None
    except LimitReachedError as error:
        raise SourceError(
            f"{where}: a part of the PDF unpacks to far more than the text of a document ({str(error)[:80]}); "
            "save it again as a plain PDF, or omit it"
        ) from None
    except (SourceError, MemoryError):
        raise
    except Exception as error:  # a damaged file can make pypdf raise any kind of error
        raise SourceError(f"{where}: the PDF is damaged ({type(error).__name__}: {str(error)[:80]}); fetch it again") from None


def _joined(pages: list[str]) -> tuple[str, tuple[tuple[int, int], ...], Removed]:
    """Return the text of all pages, the number of each page with text and where it begins, and what was removed.

    A sentence that goes on on the next page stays one; otherwise pages are separated by a blank line.
    """
    text, starts, removed = "", list[tuple[int, int]](), Removed()
    for number, page in enumerate(pages, start=1):
        cleaned, removed_there = clean_text(join_lines(page))
        cleaned, removed = cleaned.strip(), removed + removed_there
        if not cleaned:
            continue
        if text and cleaned[0].islower() and _GOES_ON.search(text[-2:]):
            text = text[:-1] if text[-1] == "-" else f"{text} "
        elif text:
            text += "\n\n"
        starts.append((number, len(text)))
        text += cleaned
    return text, tuple(starts), removed


def _text_of(page: PageObject) -> str:
    return page.extract_text()


def _text_with_raised(page: PageObject) -> str:
    """Return the text of a page, with raised digits for numbers that are smaller and higher than the text before them."""
    parts: list[str] = []
    base_size = base_height = 0.0

    def add(text: str, cm: list[float], tm: list[float], _font: object, size: float) -> None:
        nonlocal base_size, base_height
        number = text.strip()
        if number:
            size, height = abs(size * tm[3] * cm[3]), tm[5] * cm[3] + cm[5]
            rise = height - base_height
            if _RAISED.fullmatch(number) and size < _SMALL * base_size and 0.1 * base_size < rise < base_size:
                while parts and not parts[-1].strip():
                    parts.pop()
                text = number.translate(_RAISED_DIGITS)
            else:
                base_size, base_height = size, height
        parts.append(text)

    page.extract_text(visitor_text=add)
    return "".join(parts)


def _title_and_pages(reader: PdfReader, where: str, text_of: Callable[[PageObject], str]) -> tuple[str, list[str], int]:
    """Return the title, the lines of each page, and the number of pages that could not be read."""
    from pypdf.errors import LimitReachedError, WrongPasswordError

    if reader.is_encrypted and not reader.decrypt(""):
        raise WrongPasswordError
    title = str((reader.metadata.title if reader.metadata else None) or "")
    count = len(reader.pages)
    if count > MOST_PAGES:
        raise SourceError(f"{where}: {count:,} pages; at most {MOST_PAGES:,} are read, split it up")
    pages: list[str] = []
    unread = length = 0
    for number in range(count):
        try:
            text = text_of(reader.pages[number]).translate(_LIGATURES)
        except (LimitReachedError, MemoryError):
            raise
        except Exception:  # a page with damaged fonts should not lose the others
            if count == 1:
                raise
            unread += 1
            text = ""
        pages.append(text)
        length += len(text)
        if length > LARGEST_TEXT:
            raise SourceError(f"{where}: it holds more than {LARGEST_TEXT:,} characters of text; split it up")
    if unread and unread == count:
        raise ValueError("none of its pages can be read")
    return title, _without_numbers(pages), unread


def _without_numbers(pages: list[str]) -> list[str]:
    """Return pages without their printed numbers: a first or last line that counts up with the pages, on most of them."""
    lines = [[line for line in page.splitlines() if line.strip()] for page in pages]
    for place in (0, -1):
        printed = {n: int(found[1]) - n for n, page in enumerate(lines) if page and (found := _NUMBER.fullmatch(page[place]))}
        (shift, times), *_ = Counter(printed.values()).most_common(1) or [(0, 0)]
        if times >= _FEWEST_NUMBERED and 2 * times > sum(map(bool, lines)):
            for n in (n for n, by in printed.items() if by == shift):
                numbered = pages[n].splitlines()
                at = next(i for i in range(len(numbered))[:: 1 if place == 0 else -1] if numbered[i].strip())
                pages[n] = "\n".join(numbered[:at] + numbered[at + 1 :])
                lines[n] = lines[n][1:] if place == 0 else lines[n][:-1]
    return pages


def join_lines(text: str) -> str:
    """Join the printed lines of a page to paragraphs, and the words hyphenated at the end of a line.

    A paragraph ends at an empty line, and at a short line that ends a sentence; an item after a bullet keeps its line.
    ``exam-`` and ``ple`` become ``example``; a word that is written with a hyphen and split there loses it.
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    longest = sorted(map(len, lines))[len(lines) * 9 // 10] if lines else 0
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line:
            paragraphs[-1].append(line)
        if not line or (line.endswith(_SENTENCE_END) and len(line) < _SHORT * longest):
            paragraphs.append([])
    return "\n\n".join(_INNER_LINE_END.sub(" ", _HYPHEN.sub("", "\n".join(part))) for part in paragraphs if part)
