"""Plans from their files: passages of PDF, DOCX, HTML and text, with page, country, and edition.

Documents are read by the loader ``documents``. Their country and edition come from a manifest, else from their own front
matter, else from the names of file and folder; files whose country nothing says are refused.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field

from nlp_retrieval import ChunkingLoader, SearchableItem
from nlp_retrieval.core import READS_FILE, BaseLoader, build_as, may_set
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError
from nlp_retrieval.text import printable

_WORD = re.compile(r"[^\W_]+(?:['\u2019.\u00b7][^\W_]+)*")
_HYPHENED = re.compile(r"(?<=[^\W\d_])-(?=([^\W\d_]))")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_DATE = re.compile(r"((?:19|20)[0-9]{2})(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")
_EDITION = re.compile(r"(?:v|ed|edition|version|rev|ndc)([0-9]{1,2})|([0-9]{1,2})(?:st|nd|rd|th)", re.IGNORECASE)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_GENERIC = frozenset(
    "ndc ndcs indc indcs plan plans climate action national nationally determined contribution contributions intended updated "
    "update revised revision enhanced final draft submission submitted edition version report policy strategy document en "
    "eng english unfccc".split()
)
"""Words in the names of files that are no part of a country's name."""

_BETWEEN = frozenset("to of the and".split())
"""Words that are part of a name between other words of it."""


class PlansLoader(BaseLoader):
    """Passages of plans in a folder of PDF, DOCX, HTML, Markdown and text files.

    A passage's metadata are ``document``, ``country``, ``year`` or ``edition``, ``position`` in its document, ``page`` (of a
    PDF), and what else a manifest says. ``manifest.csv`` in the folder, or a CSV file as ``path``, may give them by columns
    ``file``, ``country``, ``year`` or ``edition``. Without, they come from the names: ``Japan 2021.pdf``,
    ``costa-rica_second-NDC.pdf``, ``Japan/2021.pdf``. The title of a document is kept as ``document_title``: it says nothing of
    a single passage, and is not searched.

    Args:
        path: a folder, a manifest, or a file.
        subject: the metadata key of the country, or other subject.
        size: the greatest length of a passage, in words.
        overlap: words that a passage repeats of the one before, at most.

    Examples:
        >>> Path("plans").mkdir()
        >>> _ = Path("plans/Ostland 2024.txt").write_text("Wind supplies 30% of the power.")
        >>> [(item.content, item.metadata["country"], item.metadata["year"]) for item in PlansLoader("plans").stream()]
        [('Wind supplies 30% of the power.', 'Ostland', 2024)]
    """

    name = "plans"
    manifest_may_set = may_set("subject", "size", "overlap", path=READS_FILE)

    def __init__(
        self,
        path: str | Path,
        subject: Annotated[str, Field(min_length=1)] = "country",
        size: Annotated[int, Field(ge=1)] = 150,
        overlap: Annotated[int, Field(ge=0)] = 20,
    ) -> None:
        if overlap >= size:
            raise ConfigurationError(f"PlansLoader: overlap={overlap} must be less than size={size}")
        self.path = path
        self.subject = subject
        self.size = size
        self.overlap = overlap

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the passages, document by document.

        Raises:
            SourceError: a file cannot be read, or nothing says which country it is of.
            DependencyError: a package for a kind of file is not installed.
        """
        source = build_as(BaseLoader, "loaders", {"name": "documents", "path": str(self.path)}, "corpus")
        described = _Described(source, self.subject)
        for passage in ChunkingLoader(described, self.size, self.overlap).stream():
            metadata = dict(passage.metadata)
            for key in ("parent_id", "start", "end"):
                del metadata[key]
            metadata["position"] = metadata.pop("chunk")
            yield SearchableItem.trusted(passage.item_id, passage.content, metadata)
        described.warn()


class _Described(BaseLoader):
    """Documents with country and edition."""

    name = "described_plans"

    def __init__(self, source: BaseLoader, subject: str) -> None:
        self.source = source
        self.subject = subject
        self.several: list[str] = []
        self.without: list[str] = []

    def stream(self) -> Iterator[SearchableItem]:
        for item in self.source.stream():
            metadata = dict(item.metadata)
            document = str(metadata["document"])
            named = named_in(document)
            name = " ".join(str(metadata.get(self.subject) or named.subject).split())
            if not name:
                raise SourceError(
                    f"{printable(document)}: its name does not say which {self.subject} it is of; call it like Japan 2021.pdf, "
                    f"or list it in manifest.csv, with the columns file, {self.subject} and year"
                )
            if "title" in metadata:
                metadata["document_title"] = metadata.pop("title")
            metadata[self.subject] = name
            metadata |= _edition(metadata, named)
            if not {"year", "edition"} & metadata.keys():
                self.without.append(document)
            elif len(named.years) > 1 and metadata.get("year") == named.years[0]:
                self.several.append(document)
            yield item.model_copy(update={"metadata": metadata})

    def warn(self) -> None:
        """Warn of documents whose edition is uncertain."""
        for documents, problem in (
            (self.several, "documents have several years in their names, the first of which counts as that of the edition"),
            (self.without, "documents have no year or edition, and so no changes since another"),
        ):
            if documents:
                warnings.warn(
                    f"{len(documents):,} {problem} (the first: {printable(documents[0])}); manifest.csv can say it",
                    RetrievalWarning,
                    stacklevel=3,
                )


class Named:
    """What the name of a file says of a plan."""

    def __init__(self, subject: str, years: list[int], edition: int | None) -> None:
        self.subject = subject
        self.years = years
        self.edition = edition


def named_in(document: str) -> Named:
    """Read the path of a document, relative to the folder of plans: the folder names the country, or else the file."""
    path = PurePosixPath(unicodedata.normalize("NFC", document))  # macOS writes "o" and a circumflex for "ô"
    years: list[int] = []
    edition: int | None = None
    subject = ""
    for part in (*path.parts[:-1], path.stem):
        rest: list[str] = []
        for word in _WORD.findall(_without_separators(part)):
            lower = word.casefold()
            date = _DATE.fullmatch(word)
            numbered = _EDITION.fullmatch(word)
            if date or _YEAR.fullmatch(word):
                year = int(date[1] if date else word)
                years += [] if year in years else [year]
            elif lower in _ORDINALS:
                edition = _ORDINALS[lower]
            elif numbered:
                edition = int(numbered[1] or numbered[2])
            elif lower in _BETWEEN:
                rest += [lower] if rest else []
            elif lower not in _GENERIC and not word.isdecimal():
                rest.append(word.capitalize() if word.islower() or (word.isupper() and len(word) > 3) else word)
        while rest and rest[-1] in _BETWEEN:
            rest.pop()
        subject = subject or " ".join(rest).replace(_KEPT, "-")
    return Named(subject, years, edition)


_KEPT = "\u00b7"


def _without_separators(part: str) -> str:
    """Return the name of a folder or file in which a hyphen of a name, as in Timor-Leste, is kept as part of a word."""
    separates = not re.search(r"[\s_]", part) and re.search(r"-\W*\d|\d\W*-", part)
    return part if separates else _HYPHENED.sub(lambda match: _KEPT if match[1].isupper() else "-", part)


def _edition(metadata: Mapping[str, object], named: Named) -> dict[str, int]:
    """Return year and edition as numbers, where they are known."""
    found = {}
    for key, own in (("year", named.years[0] if named.years else None), ("edition", named.edition)):
        value = metadata.get(key)
        if isinstance(value, str) and re.fullmatch("[0-9]{1,4}", value):
            found[key] = int(value)
        elif isinstance(value, str) and value.casefold() in _ORDINALS:
            found[key] = _ORDINALS[value.casefold()]
        elif value is None and own is not None:
            found[key] = own
    if "year" not in found and isinstance(metadata.get("date"), str) and (year := _YEAR.match(str(metadata["date"]))):
        found["year"] = int(year[0])
    return found
