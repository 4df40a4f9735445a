"""Plans from their files: passages of PDF, DOCX, HTML and text, with page, country, and edition.

Documents are read by the loader ``documents``. Their country and edition come from a manifest, else from the names of
file and folder; files whose country nothing says are refused.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, NamedTuple

from pydantic import Field

from nlp_retrieval import ChunkingLoader, SearchableItem
from nlp_retrieval.core import READS_FILE, BaseLoader, build_as, may_set
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning, SourceError
from nlp_retrieval.text import dates_of, printable, words_of

_MONTH, _DAY = "(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_SAID = re.compile(
    rf"(?<!\d)(?:{_DAY}{_MONTH}|{_MONTH}{_DAY})?(?P<year>(?:19|20)\d\d)(?:{_MONTH}{_DAY})?(?!\d)|"
    r"(?<![^\W\d_])(?:v|ed|edition|version|rev|update|ndc)[ ._-]?(?P<edition>\d{1,2})(?:\.\d+)?(?!\d)|"
    r"(?<!\d)(?P<nth>\d{1,2})(?:st|nd|rd|th)(?![^\W_])",
    re.IGNORECASE,
)
"""What the name of a file says of an edition: a year, also as the beginning or end of a date, or a number."""

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019.][^\W\d_]+)*")
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "primera": 1, "segunda": 2, "tercera": 3}
_ORDINALS |= {"premiere": 1, "deuxieme": 2, "troisieme": 3, "primeira": 1, "terceira": 3}
_GENERIC = frozenset(
    "ndc ndcs indc indcs cdn cpdn lts lt leds plan plans climate action national nationally determined contribution "
    "contributions intended updated update revised revision enhanced final draft clean signed copy submission submitted "
    "edition version report policy strategy document unfccc contribucion contribuicao determinada determinee actualizada "
    "actualizacion atualizada atualizacao actualisee revisee mise jour nivel niveau bur btr climat clima nacional "
    "nacionalmente nationale amendment addendum annex contrib resubmission development change cambio accion acao programme "
    "programa estrategia strategie climatica climatico climatique politica politique en eng english fr francais es spanish "
    "espanol pt portuguese portugues ru russian ar arabic zh chinese".split()
)
"""Words in the names of files that are no part of a country's name."""

_COMPOUND = re.compile(
    r"(?i)(?<![^\W_])(?:long[\s_-]term|mid[\s_-]century|net[\s_-]zero|low[\s_-](?:carbon|emissions?))(?![^\W_])"
)
"""Words that are no part of a name together: Long Beach has one of them."""

_BETWEEN = frozenset("french to of the and a à au aux de du des del la le les da do dos di e y et und".split())
"""Words that are part of a name between other words of it, and tell no two names apart; some may begin one: La Paz."""

_HYPHENED = {"Timor Leste": "Timor-Leste", "Guinea Bissau": "Guinea-Bissau"}
"""Names that have a hyphen where one stands for a blank, as in ``timor-leste-2022.pdf``."""


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
        self.spelt: dict[tuple[str, ...], str] = {}
        self.several: list[str] = []
        self.without: list[str] = []

    def stream(self) -> Iterator[SearchableItem]:
        for item in self.source.stream():
            metadata = dict(item.metadata)
            document = str(metadata["document"])
            named = named_in(document)
            # one country, however the names of its files spell it
            words = tuple(sorted(words_of(named.subject)))
            spelt = self.spelt.setdefault(tuple(word for word in words if word not in _BETWEEN) or words, named.subject)
            name = " ".join(str(metadata.get(self.subject) or spelt).split())
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


class Named(NamedTuple):
    """What the name of a file says of a plan."""

    subject: str
    years: list[int]
    edition: int | None


def named_in(document: str) -> Named:
    """Read the path of a document, relative to the folder of plans: the folder names the country, or else the file."""
    written = unicodedata.normalize("NFC", document)  # macOS writes "o" and a circumflex for "\u00f4"
    for date in reversed(dates_of(written.replace("_", " "))):  # of June 2021 the year counts
        if date.readings[0].year:
            written = f"{written[: date.begin]}{date.readings[0].year}{written[date.end :]}"
    path = PurePosixPath(written)
    years: list[int] = []
    edition: int | None = None
    subject = ""
    for part in (*path.parts[:-1], path.stem):
        for said in _SAID.finditer(part):
            if said["year"]:
                years.append(int(said["year"]))
            else:
                edition = int(said["edition"] or said["nth"])
        rest = _SAID.sub("\0", part)
        edition = next((_ORDINALS[word] for word in words_of(rest.replace("_", " ")) if word in _ORDINALS), edition)
        subject = subject or _subject_in(rest)
    code = "" if subject else re.sub(r"[\W\d_].*", "", path.stem)
    return Named(code if re.fullmatch("(?!EN|ZH)[A-Z]{2}", code) else subject, list(dict.fromkeys(years)), edition)


def _subject_in(name: str) -> str:
    """Return the first words together that are not about the document, as they are written; empty for none."""
    if not re.search(r"\s", name):
        name = "_".join(part.replace("-", " ") if part.count("-") > 1 else part for part in name.split("_"))
    name = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])(?![A-Z])", " ", _COMPOUND.sub("plan", name))
    begin = end = 0
    for match in _WORD.finditer(name):
        word = "".join(words_of(match[0]))
        is_generic = word in _GENERIC or word in _ORDINALS
        if end and (is_generic or re.search(r"[\0\d]|\s-\s", name[end : match.start()].replace("_", " "))):
            if name[begin:end].casefold() not in _BETWEEN:  # as "Le" of "Le plan climat de la France"
                break
            end = 0
        is_article = match[0].istitle() or not match.start()
        if not is_generic and (
            word not in _BETWEEN or (is_article and not end and word not in {"the", "of", "to", "and", "a"})
        ):
            begin, end = (begin if end else match.start()), match.end()
        elif end and re.search(r"[(,]", name[begin : match.start()]):  # Korea, Republic of
            end = match.end()
    place = " ".join(re.sub(r"['\u2019]s\Z", "", name[begin:end]).replace("_", " ").split())
    place += ")" * ("(" in place and ")" not in place)
    if place.islower() or (place.isupper() and len(place) > 3):
        place = place.replace("\u0130", "I").lower()  # of TÜRKİYE, whose dot would stay
        place = re.sub(r"[^\W\d_]{2,}", lambda at: at[0] if at[0] in _BETWEEN and at.start() else at[0].capitalize(), place)
    return _HYPHENED.get(place, place)


def _edition(metadata: Mapping[str, object], named: Named) -> dict[str, int]:
    """Return year and edition as numbers, where they are known."""
    dated = {}
    for key, own in (("year", named.years[0] if named.years else None), ("edition", named.edition)):
        value = metadata.get(key)
        if isinstance(value, str) and (number := re.fullmatch(r"([0-9]{1,4})(?:\.0*|st|nd|rd|th)?", value.strip())):
            dated[key] = int(number[1])
        elif isinstance(value, str) and value.casefold() in _ORDINALS:
            dated[key] = _ORDINALS[value.casefold()]
        elif value is None and own is not None:
            dated[key] = own
    if "year" not in dated and (year := re.match(r"(?:19|20)\d\d", str(metadata.get("date")))):
        dated["year"] = int(year[0])
    return dated
