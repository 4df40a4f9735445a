"""Bibliographies: BibTeX and BibLaTeX, CSL-JSON and Zotero's other JSON.

An entry becomes a :class:`Reference` whose mark is its key and whose title begins with surnames and year, so that keys and
authors with a year both find it. The format is recognised by the text, not by a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from typing import Any
from unicodedata import normalize

from nlp_retrieval.core import parse_json
from nlp_retrieval.documents.blocks import Reference, clean_text, plain_links, web_address
from nlp_retrieval.errors import DependencyError, InputError, install
from nlp_retrieval.text import printable

_ENTRY = re.compile(r"@[ \t]{0,20}([A-Za-z]{1,40})\s{0,20}[{(]\s{0,20}([^\s,{}()=]{1,200})?\s{0,20}(=?)")
_YEAR = re.compile(r"(?<![0-9])[12][0-9]{3}[a-z]?(?![0-9a-z])|in ?press|forthcoming", re.IGNORECASE)
_PLACES = ("howpublished", "note", "journal", "journaltitle", "volume", "number", "link", "pmcid", "eprint", "extra")
_ARCHIVES = {"pubmed": "PMID:", "jstor": "https://www.jstor.org/stable/", "hal": "https://hal.science/"}
_HOST = re.compile(r"(?:[\w-]{1,60}\.){1,5}[a-z]{2,10}/", re.IGNORECASE)


def read_bibliography(text: str, where: str = "the bibliography") -> list[Reference]:
    """Read BibTeX, BibLaTeX, CSL-JSON, or JSON of Better BibTeX; the mark of each entry is its key."""
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith(("[", "{")):
        return _read_json(text, where)
    return _read_bibtex(text, where)


def _entry_of(key: str, surnames: Sequence[str], year: str, title: str, addresses: Iterable[str], line: int) -> Reference:
    """Return a work as an entry, which begins as in a list of references: ``"Frisch & Doe (1965). The dance"``."""
    names = surnames[:20]
    authors = f"{', '.join(names[:-1])} & {names[-1]}" if len(names) > 1 else "".join(names)
    links = list(dict.fromkeys(filter(None, map(web_address, filter(None, addresses)))))
    text = f"{authors} ({year or 'n.d.'}). {title}".strip() if authors or year else title
    cleaned = " ".join(normalize("NFC", clean_text(text)[0]).split())
    return Reference(key, cleaned, "".join(links[:1]), line, tuple(links[1:]))


# BibTeX and BibLaTeX.


def _read_bibtex(text: str, where: str) -> list[Reference]:
    try:
        from pybtex import errors
        from pybtex.database.input.bibtex import DuplicateField, Parser
        from pybtex.utils import CaseInsensitiveDict
    except ImportError as error:
        raise DependencyError(f"reading BibTeX needs pybtex: {install('evidence')} ({error})") from None

    class Strings(CaseInsensitiveDict):  # type: ignore[misc]  # pybtex has no types
        def __getitem__(self, name: str) -> str:
            return str(super().__getitem__(name)) if name in self else name  # an undefined string reads as its name

    lines, line, begin = dict[str, int](), 1, 0
    for match in _ENTRY.finditer(text):
        line, begin = line + text.count("\n", begin, match.start()), match.start()
        if (kind := match[1].lower()) not in ("comment", "string", "preamble"):
            if not match[2] or match[3]:
                cure = f"write one after its bracket, as in @{kind}{{frisch1965,"
                raise InputError(f"{where}, line {line}: the @{match[1]} there has no key; {cure}")
            lines.setdefault(match[2].casefold(), line)
    parser = Parser(encoding="utf-8", person_fields=())
    parser.macros = Strings(parser.macros)
    with errors.capture() as problems:
        data = parser.parse_string(re.sub(r"(?m)^%.*", lambda line: re.sub(r"@(?![A-Za-z]+\s*[{(])", "", line[0]), text))
    for problem in problems:
        if not isinstance(problem, DuplicateField):
            place = f", line {problem.lineno}" if getattr(problem, "lineno", None) else ""
            raise InputError(f"{where}{place}: broken BibTeX ({printable(str(problem))[:120]}); check its braces and keys")
    if not data.entries:
        cure = "export it as BibTeX, with entries as @article{key, title = {...}}, or as CSL-JSON"
        raise InputError(f"{where}: no entry could be read; it begins {printable(text.strip()[:40])!r}: {cure}")
    entries = []
    for key, entry in data.entries.items():
        read = _bibtex_entry(entry, data.entries, lines.get(key.casefold(), 1))
        # other keys of it have no authors and title, or these would name several works
        others = filter(None, re.split(r"[\s,]+", entry.fields.get("ids", "")))
        entries += [read, *(Reference(other, "", read.url, read.line, read.other_urls) for other in others)]
    return entries


def _bibtex_entry(entry: Any, entries: Mapping[str, Any], line: int) -> Reference:
    from pybtex.bibtex.utils import split_name_list

    fields: dict[str, str] = dict(entry.fields.lower())
    for _ in range(4):  # a volume may be that of a series
        own = ("author", "title") if "crossref" in fields else ()
        if (volume := entries.get(fields.pop("crossref", "") or fields.pop("xdata", ""))) is not None:
            fields = {name: value for name, value in volume.fields.lower().items() if name not in own} | fields
    names = map(_surname, split_name_list(fields.get("author") or fields.get("editor", "")))
    surnames = [name for name in names if name.casefold() not in ("", "others")]
    surnames = surnames or [_plain_text(fields[name]) for name in ("organization", "institution") if fields.get(name)][:1]
    year = _YEAR.search(fields.get("year", "") or fields.get("date", ""))
    title = _plain_text(fields.get("title", ""))
    return _entry_of(entry.key, surnames, year[0] if year else "", title, _addresses(fields), line)


def _surname(name: str) -> str:
    """Return the surname of a person; all of a name of several words without a comma, which may be that of a group."""
    from pybtex import errors
    from pybtex.database import Person

    if family := re.search(r"(?:\A|,)\s{0,9}family=([^,]+)", name):  # in the form of BibLaTeX
        return _plain_text(family[1])
    with errors.capture():  # too many commas
        person = Person(name)
    if len(name.split()) > 2 and not person.prelast_names and not re.search(r"[,.{]|\b\w{1,2}\b", name):
        return _plain_text(name)
    return _plain_text(" ".join([*person.prelast_names, *person.last_names]))


def _addresses(fields: Mapping[str, str]) -> list[str]:
    """Return the addresses of a work, the best one first."""
    url = re.sub(r"\A\\url\s*\{(.*)\}\Z|\A<(.*)>\Z", r"\1\2", fields.get("url", "")).replace("\\", "")
    url = re.split(r"[,;]?\s+(?=https?://)", url)[0]
    url = f"https://{url}" if _HOST.match(url) else url
    eprint = fields.get("eprint", "") and _ARCHIVES.get(fields.get("eprinttype", "").lower(), "arXiv:") + fields["eprint"]
    doi = fields.get("doi", "").strip().replace("\\", "")
    elsewhere = re.sub(r"\\url\s*\{|[{}\\]", " ", " ".join(fields.get(name, "") for name in _PLACES))
    links = [address for _, address in plain_links(elsewhere) if address]
    return [f"doi:{doi}" if doi.startswith("10.") else doi, url, f"PMID:{fields.get('pmid', '')}", eprint, *links]


def _plain_text(source: str) -> str:
    """Return text of BibTeX as plain text: accents, quotes and dashes as characters, formulas as far as they can be."""
    if "\\" in source or "$" in source:
        from pylatexenc.latex2text import LatexNodes2Text

        try:
            return " ".join(LatexNodes2Text().latex_to_text(source[:10_000], tolerant_parsing=True).split())
        except RecursionError:
            pass
    return " ".join(source.replace("{", "").replace("}", "").replace("~", " ").split())


# CSL-JSON, and the JSON of Better BibTeX.


def _read_json(text: str, where: str) -> list[Reference]:
    try:
        data = parse_json(text.encode("utf-8", "replace"))
    except ValueError as error:
        raise InputError(f"{where}: broken JSON ({printable(str(error))[:120]}); export it again as CSL-JSON") from None
    items = data.get("items") if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise InputError(f"{where}: JSON without a list of works; export it as CSL-JSON")
    entries, numbers = [], dict[str, int]()
    for number, item in enumerate(items, start=1):  # which stands for its line
        key = _text(item, "citation-key", "citationKey", "id") if isinstance(item, dict) else ""
        if not key:
            raise InputError(f'{where}: work {number} has no key; give it an "id"')
        if (first := numbers.setdefault(key.casefold(), number)) != number:
            named = f"the key {printable(key[:80])!r} of work {number}"
            raise InputError(f"{where}: {named} is also that of work {first}; give each work a key of its own")
        entries.append(_csl_entry(key, item, number))
    return entries


def _csl_entry(key: str, item: Mapping[str, Any], line: int) -> Reference:
    people: Any = next((item[role] for role in ("author", "creators", "editor") if item.get(role)), [])
    surnames = [
        f"{_text(person, 'non-dropping-particle')} {_text(person, 'family', 'lastName', 'literal', 'name')}".strip()
        if isinstance(person, dict)
        else _surname(str(person))
        for person in (people if isinstance(people, list) else [people])
    ]
    fields = {name.lower(): _text(item, name) for name in item}
    title = unescape(re.sub(r"</?[a-z]{1,10}>", "", _text(item, "title")))
    year = _YEAR.search(str(item.get("issued") or _text(item, "date", "year"))[:200])
    dated = year[0] + str(item.get("year-suffix") or "")[:2] if year else ""
    return _entry_of(key, list(filter(None, surnames)), dated, title, _addresses(fields), line)


def _text(item: Mapping[str, Any], *names: str) -> str:
    return next((str(item[name]).strip() for name in names if isinstance(item.get(name), str | int) and item[name] != ""), "")
