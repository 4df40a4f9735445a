"""The texts that the patterns of evidence are worst at, by module, as ``attacks.growth`` runs them."""

from __future__ import annotations

from attacks.growth import in_prose

_CITATIONS = "from nlp_retrieval.systems.evidence.citations"
_OF = "from nlp_retrieval.systems.evidence"

EVIDENCE = {
    "systems/evidence/citations/markdown.py, parser": in_prose(
        "markdown_parser().parse(text[:N])", f"{_CITATIONS}.markdown import markdown_parser"
    ),
    "systems/evidence/citations/addresses.py": in_prose(
        "_WRAPPED.match('https://www.google.com/url?' + text), web_address(text), list(plain_pieces(text, 1)), trimmed(text)",
        f"{_CITATIONS}.addresses import _WRAPPED, plain_pieces, trimmed, web_address",
    ),
    "systems/evidence/citations/markdown.py": in_prose(
        "web_address(text), blocks_of(text[:N])", f"{_CITATIONS}.markdown import blocks_of, web_address"
    ),
    "systems/evidence/citations/report.py": in_prose("states_fact(text)", f"{_CITATIONS}.report import states_fact"),
    "systems/evidence/citations/marks.py": in_prose(
        "key_of(text), numbers_of(text), author_and_year(text), list(READER.find(text)), READER.raised(text, 'Bees')",
        f"{_CITATIONS}.marks import MarkReader, author_and_year, key_of, numbers_of\nREADER = MarkReader(lambda name: False)",
    ),
    "systems/evidence/lookups/quotations.py": in_prose(
        "for said in (text, MARK + text, chr(0x201c) + text[: N // 3] + chr(0x201d)): missing_quotations(said, 'Ice.')",
        f"{_OF}.lookups.quotations import missing_quotations\nMARK = chr(34)\n"
        "MORE = ((MARK + 'a b ') * (N // 5), (' ' + MARK) * N, chr(0x201e) * N, chr(0xab) * N, (chr(0xab) + 'a') * N, "
        "'a ' + chr(39) * N, chr(0x2018) * N, (' ' + chr(39) + 'a') * N, ('s' + chr(39) + ' a') * N, chr(0x300c) * N, "
        "chr(0xbb) * N, chr(0x201c) + 'a b ... ' * (N // 30) + chr(0x201d), chr(0x201c) + '[' * (N // 4) + chr(0x201d))\n"
        "for said in MORE:\n    missing_quotations(said, 'Ice.')",
    ),
    "systems/evidence/citations/report.py, prose": in_prose("read_report(text[:N])", f"{_CITATIONS}.report import read_report"),
    "systems/evidence/citations/references.py": in_prose(
        "read_report('# References' + chr(10) * 2 + '[1] ' + text[:N])", f"{_CITATIONS}.report import read_report"
    ),
    "systems/evidence/citations/bibliography.py": in_prose(
        "\n    ".join(
            [
                "for before in ('@a{b, title={', '@a{', 'TY  - ', '[', ''):",
                "    try:",
                "        read_bibliography(before + text[:N])",
                "    except InputError:",
                "        pass",
            ]
        ),
        f"from nlp_retrieval.errors import InputError\n{_CITATIONS}.bibliography import read_bibliography",
    ),
    "systems/evidence/citations/docx.py": in_prose(
        "_HYPERLINK.search('HYPERLINK ' + text), _CSL.search('CSL_CITATION' + text), _CITATION.findall('CITATION ' + text), "
        "_STORE.fullmatch('customXml/item' + text)",
        f"{_CITATIONS}.docx import _CITATION, _CSL, _HYPERLINK, _STORE",
    ),
    "systems/evidence/citations/html.py": in_prose(
        "_NOTE.search(text), _SHORT_MARK.fullmatch(text), _spaced(text)",
        f"{_CITATIONS}.html import _NOTE, _SHORT_MARK, _spaced",
    ),
    "systems/evidence/citations/latex.py": in_prose(
        "[pattern.sub('', before + text) for pattern in PATTERNS for before in BEFORE], "
        "_expanded(MACRO + '{x}' + text), _expanded(MACRO + '[1]{#1}' + chr(92) + 'x' + text), _DEFINES.search(text)",
        f"{_CITATIONS}.latex import _ADDRESS, _BIBLIOGRAPHIES, _COMMENT, _OTHER_FILES, _PARAGRAPH, _RAISED\n"
        f"{_CITATIONS}.latex import _DEFINES, _expanded\n"
        "MACRO = chr(92) + 'newcommand{' + chr(92) + 'x}'\n"
        "PATTERNS = (_ADDRESS, _BIBLIOGRAPHIES, _COMMENT, _OTHER_FILES, _PARAGRAPH, _RAISED)\n"
        "BEFORE = ('', chr(92) + 'url{', chr(92) + 'input{', chr(92) + 'bibliography{', '$^{')",
    ),
    "systems/evidence/citations/pdf.py": in_prose(
        "list(_blocks([(1, chr(185) + text[:N]), (1, 'References'), (1, '[1] https://' + text[:N]), (2, text[:N])])), "
        "list(_lines([text])), _FOOTNOTE.match('1' + text), _DATED.match(text), _YEAR.search(text), _BARE.match('1 ' + text)",
        f"{_CITATIONS}.pdf import _BARE, _DATED, _FOOTNOTE, _YEAR, _blocks, _lines",
    ),
    "systems/evidence/audit_report.py": in_prose(
        "_text(text)", "from nlp_retrieval.systems.evidence.audit_report import _text"
    ),
    "systems/evidence/verdict/claims.py": in_prose(
        "origins_of([{'a'}, {'b'}], [text, 'Reporting by ' * 10_000 + text])",
        "from nlp_retrieval.systems.evidence.verdict.claims import origins_of",
    ),
    "systems/evidence/index/statistics.py": in_prose(
        "relevance_of(text, text)", "from nlp_retrieval.systems.evidence.index.statistics import relevance_of"
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
    "systems/evidence/reading/cleaning.py": in_prose(
        "clean_text(text)", "from nlp_retrieval.systems.evidence.reading.cleaning import clean_text"
    ),
    "systems/evidence/claim_files.py": in_prose(
        "[pattern.match(one) for pattern in (_DASHED, _NUMBERED, _ITEM) for one in (text, '- ' * N, '1' * N, ' ' * N)]",
        "from nlp_retrieval.systems.evidence.claim_files import _DASHED, _ITEM, _NUMBERED",
    ),
    "systems/evidence/reading/metadata.py": in_prose(
        "\n    ".join(
            [
                "for text in (text, '---' + chr(10) + text, '---' + chr(10) + 'a: ' + text + chr(10) + '---'):",
                "    split_front_matter(text, 'a.txt', strict=False)",
                "describe_front_matter([('url', text), ('source', text), ('permalink', text)], 'a.txt')",
            ]
        ),
        "from nlp_retrieval.systems.evidence.reading.metadata import describe_front_matter, split_front_matter",
    ),
    "systems/evidence/reading/pdf.py": in_prose(
        "pdf.join_lines(text), pdf.join_lines(('a-' + chr(10)) * 50_000), pdf._joined([text] * 9), pdf._NUMBER.fullmatch(text)",
        "from nlp_retrieval.systems.evidence.reading import pdf",
    ),
    "systems/evidence/grades.py": in_prose(
        "grades._NAME.fullmatch(text), grades._BAD_IN_URL.search(text)",
        "from nlp_retrieval.systems.evidence import grades",
    ),
    "systems/evidence/reading/page.py": in_prose(
        "[pattern.search(one) for pattern in (raised._IN_TEXT, raised._NOTE_NAMES, raised._NOTE_PLACE) "
        "for one in (text, 'x[1' * 5_000, 'x[' + '1,' * 5_000)]",
        "from nlp_retrieval.systems.evidence.reading import page as raised",
    ),
    "systems/evidence/citations/building.py": in_prose(
        "_IS_NUMBER.fullmatch(text)", f"{_CITATIONS}.building import _IS_NUMBER"
    ),
    "systems/evidence/reading/text_of.py": in_prose(
        "for said in (text, chr(92) + 'usepackage' + ' ' * N + text, (chr(92) + 'usepackage[') * N): "
        "_INPUT_ENCODING.search(said.encode('utf-8', 'replace'))",
        f"{_OF}.reading.text_of import _INPUT_ENCODING",
    ),
    "systems/evidence/titles.py": in_prose(
        "TitledSources([SourceVersion('', '', text, 'B', '', 0, False)]), TitledSources([]).named_in(text)",
        f"{_OF}.index.store import SourceVersion\n{_OF}.titles import TitledSources",
    ),
    "systems/evidence/verifiers/perturbations.py": in_prose(
        "negated(JudgedPair(text, 'b', 'support'), random.Random(0))",
        "import random\nfrom nlp_retrieval.systems.evidence.verifiers.pairs import JudgedPair\n"
        "from nlp_retrieval.systems.evidence.verifiers.perturbations import negated",
    ),
    "systems/evidence/lookups/names.py": in_prose(
        "missing_names(text, 'World Health Organization')", f"{_OF}.lookups.names import missing_names"
    ),
    "systems/evidence/lookups/numbers.py": in_prose(
        "missing_figures(text, '1 day'), missing_figures('3 days more, 5%', text)",
        f"{_OF}.lookups.numbers import missing_figures",
    ),
    "systems/evidence/lookups/binding.py": in_prose(
        "[misplaced(one, other) for one, other in ((text, '1 day, 2 hours'), ('1 day and 2 hours', text), "
        "('1 day and 2 hours', ROWS))]",
        f"{_OF}.lookups.binding import misplaced\nROWS = '| 1 | 2 |' * N + (chr(10) + '1|2') * N",
    ),
    "systems/evidence/lookups/computed.py": in_prose(
        "[found_otherwise(one, number, NUMBERS) for one in (text, 'half ' * N) for number in NUMBERS]",
        f"{_OF}.lookups.computed import found_otherwise, numbers_near\nNUMBERS = numbers_near('day', '1 day, 2 days')",
    ),
    "systems/evidence/lookups/who.py": in_prose(
        "[of_another(one, sentences(text)) for one in ('The union praised it.', 'More than it.', 'He said so.', text)]",
        f"{_OF}.lookups.who import of_another\nfrom nlp_retrieval.systems.evidence.lookups.words import sentences",
    ),
    "systems/evidence/lookups/checks.py": in_prose(
        "check('He did not go.', text[: N // 4])", f"{_OF}.lookups.checks import check"
    ),
    "systems/evidence/lookups/denial.py": in_prose(
        "negated(text), denies_change(text), denies_change('no ' * N)",
        f"{_OF}.lookups.denial import denies_change, negated",
    ),
    "systems/evidence/lookups/opposites.py": in_prose(
        "replaced_things(text, 'helium'), opposite_words(text, sentences(text))",
        f"{_OF}.lookups.opposites import opposite_words, replaced_things\n"
        "from nlp_retrieval.systems.evidence.lookups.words import sentences",
    ),
    "systems/evidence/verdict/together.py": in_prose("parts_of(text)", f"{_OF}.verdict.together import parts_of"),
}
