"""The texts that the patterns of evidence are worst at, by module, as ``attacks.growth`` runs them."""

from __future__ import annotations

from attacks.growth import in_prose

_CITATIONS = "from nlp_retrieval.systems.evidence.citations"
_OF = "from nlp_retrieval.systems.evidence"

EVIDENCE = {
    "systems/evidence/citations/report.py": in_prose("states_fact(text)", f"{_CITATIONS}.report import states_fact"),
    "systems/evidence/citations/marks.py": in_prose(
        "key_of(text), number_of(text), author_and_year(text), list(READER.find(text)), READER.raised(text, 'Bees')",
        f"{_CITATIONS}.marks import MarkReader, author_and_year\n{_CITATIONS}.references import key_of, number_of\n"
        "READER = MarkReader(lambda name: False)",
    ),
    "systems/evidence/lookups/quotations.py": in_prose(
        "for said in (text, MARK + text, chr(0x201c) + text[: N // 3] + chr(0x201d)): missing_quotations(said, 'Ice.')",
        f"{_OF}.lookups.quotations import missing_quotations\nMARK = chr(34)\n"
        "MORE = ((MARK + 'a b ') * (N // 5), (' ' + MARK) * N, chr(0x201e) * N, chr(0xab) * N, (chr(0xab) + 'a') * N, "
        "'a ' + chr(39) * N, chr(0x2018) * N, (' ' + chr(39) + 'a') * N, ('s' + chr(39) + ' a') * N, chr(0x300c) * N, "
        "chr(0xbb) * N, chr(0x201c) + 'a b ... ' * (N // 30) + chr(0x201d), chr(0x201c) + '[' * (N // 4) + chr(0x201d))\n"
        "for said in MORE:\n    missing_quotations(said, 'Ice.')",
    ),
    "systems/evidence/citations/report.py, prose": in_prose(
        "[read_report(one[: N // 2]) for one in (text, '[Bee](https://a.example) ' * N, '([1] ' * N, '[1]-[3] ' * N)]",
        f"{_CITATIONS}.report import read_report",
    ),
    "systems/evidence/citations/references.py": in_prose(
        "read_report('# References' + chr(10) * 2 + '[1] ' + text[:N])", f"{_CITATIONS}.report import read_report"
    ),
    "systems/evidence/citations/references.py, of a PDF": in_prose(
        "list(_entries([[Piece('text', one, 1)] for one in ('[1] ' + text, text)])), _DATED.match(text)",
        f"from nlp_retrieval.documents import Piece\n{_CITATIONS}.references import _DATED, _entries",
    ),
    "systems/evidence/index/passages.py": in_prose(
        "passage_spans(normal_text('a ' + text + ' b'))",
        "from nlp_retrieval.systems.evidence.index.passages import normal_text, passage_spans",
    ),
    "systems/evidence/index/urls.py": in_prose(
        "\n    ".join(
            [
                "for before in ('', 'doi:', 'doi:10.1', 'https://', 'https://a.example/', 'https://a.example/?'):",
                "    try:",
                "        canonical_url(before + text)",
                "    except InputError:",
                "        pass",
            ]
        ),
        "from nlp_retrieval.errors import InputError\nfrom nlp_retrieval.systems.evidence.index.urls import canonical_url",
    ),
    "systems/evidence/lookups/words.py": in_prose(
        "clauses_of(text), [one.is_heading for one in sentences(text)]",
        f"{_OF}.lookups.words import clauses_of, sentences",
    ),
    "systems/evidence/lookups/numbers.py": in_prose(
        "missing_figures(text, '1 day'), missing_figures('3 days more, 5%', text)",
        f"{_OF}.lookups.numbers import missing_figures",
    ),
    "systems/evidence/lookups/numbers.py, bound": in_prose(
        "[misplaced(one, other) for one, other in ((text, '1 day, 2 hours'), ('1 day and 2 hours', text), "
        "('1 day and 2 hours', ROWS))]",
        f"{_OF}.lookups.numbers import misplaced\nROWS = '| 1 | 2 |' * N + (chr(10) + '1|2') * N",
    ),
    "systems/evidence/lookups/numbers.py, computed": in_prose(
        "[found_otherwise(one, number, NUMBERS) for one in (text, 'half ' * N) for number in NUMBERS]",
        f"{_OF}.lookups.numbers import found_otherwise\nfrom nlp_retrieval.text import numbers_of\n"
        "NUMBERS = numbers_of('1 day, 2 days')",
    ),
    "systems/evidence/lookups/checks.py": in_prose(
        "check('He did not go.', text[: N // 4])", f"{_OF}.lookups.checks import check"
    ),
    "systems/evidence/lookups/contradictions.py": in_prose(
        "negated(text), denies_change(text), denies_change('no ' * N), opposite_words(text, sentences(text)), "
        "[of_another(one, sentences(text)) for one in ('The union praised it.', 'He said so.', text)]",
        f"{_OF}.lookups.contradictions import denies_change, negated, of_another, opposite_words\n"
        "from nlp_retrieval.systems.evidence.lookups.words import sentences",
    ),
    "systems/evidence/lookups/names.py": in_prose(
        "replaced_things(text, 'helium')", f"{_OF}.lookups.names import replaced_things"
    ),
}
