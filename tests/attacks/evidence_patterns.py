"""The texts that the patterns of the evidence room are worst at, by module, as ``test_patterns`` runs them."""

from __future__ import annotations

_TEXTS = """
TEXTS = ("." * N, ". " * N, "A. " * N, '."' * N, "e.g. " * N, " " * N, "a" * N, "[" * N, "[1" * N, "[1]" * N, "[1, " * N,
         "(" * N,
         "[^a" * N, "1" * N, "1," * N, "1 million " * N, "A" * N, "Ab " * N, "Ab. " * N, "not " * N, "n't" * N, chr(10) * N,
         (chr(10) + " ") * N, "-" * N, "http://" * N, "https://a.b/" * N, "_" * N, "*" * N, "`" * N, "<" * N, "&" * N,
         chr(0x3002) * N, chr(0x200b) * N, chr(0x202e) * N, "[a](" * N, "![" * N, "| " * N, "doi:10.1/" * N)
"""


def _each(body: str, imports: str) -> str:
    return f"{imports}\n{_TEXTS}\nfor text in TEXTS:\n    {body}\n"


_CITATIONS = "from nlp_retrieval.systems.evidence.citations"
_SIGNALS = "from nlp_retrieval.systems.evidence.verifiers.signals"

EVIDENCE = {
    "text/sentences.py": _each("sentences_of(text)", "from nlp_retrieval.text.sentences import sentences_of"),
    "evidence/citations/parser.py": _each("markdown_parser().parse(text[:N])", f"{_CITATIONS}.parser import markdown_parser"),
    "evidence/citations/blocks.py": _each(
        "web_address(text), blocks_of(text[:N])", f"{_CITATIONS}.blocks import blocks_of, web_address"
    ),
    "evidence/citations/facts.py": _each("states_fact(text)", f"{_CITATIONS}.facts import states_fact"),
    "evidence/citations/marks.py": _each(
        "key_of(text), numbers_of(text), author_and_year(text), list(READER.find(text)), READER.raised(text, 'Bees')",
        f"{_CITATIONS}.marks import MarkReader, author_and_year, key_of, numbers_of\nREADER = MarkReader(lambda name: False)",
    ),
    "evidence/citations/quoted.py": _each(
        "for said in (text, MARK + text, chr(0x201c) + text[: N // 3] + chr(0x201d)): missing_quotations(said, 'Ice.')",
        f"{_CITATIONS}.quoted import missing_quotations\nMARK = chr(34)\n"
        "MORE = ((MARK + 'a b ') * (N // 5), (' ' + MARK) * N, chr(0x201e) * N, chr(0xab) * N, (chr(0xab) + 'a') * N, "
        "'a ' + chr(39) * N, chr(0x2018) * N, (' ' + chr(39) + 'a') * N, ('s' + chr(39) + ' a') * N, chr(0x300c) * N, "
        "chr(0xbb) * N, chr(0x201c) + 'a b ... ' * (N // 30) + chr(0x201d), chr(0x201c) + '[' * (N // 4) + chr(0x201d))\n"
        "for said in MORE:\n    missing_quotations(said, 'Ice.')",
    ),
    "evidence/citations/prose.py": _each("read_report(text[:N])", f"{_CITATIONS}.markdown import read_report"),
    "evidence/citations/references.py": _each(
        "read_report('# References' + chr(10) * 2 + '[1] ' + text[:N])", f"{_CITATIONS}.markdown import read_report"
    ),
    "evidence/citations/retrieval_audit.py": _each("_text(text)", f"{_CITATIONS}.retrieval_audit import _text"),
    "evidence/claims/independence.py": _each(
        "origins_of([{'a'}, {'b'}], [text, 'Reporting by ' * 10_000 + text])",
        "from nlp_retrieval.systems.evidence.claims import origins_of",
    ),
    "evidence/index/counters.py": _each(
        "relevance_of(text, text)", "from nlp_retrieval.systems.evidence.index.counters import relevance_of"
    ),
    "evidence/index/passages.py": _each(
        "passage_spans(normal_text('a ' + text + ' b'))",
        "from nlp_retrieval.systems.evidence.index.passages import normal_text, passage_spans",
    ),
    "evidence/index/urls.py": _each(
        "\n    ".join(
            [
                "for url in (text, 'https://' + text, 'https://a.example/' + text, 'https://a.example/?' + text):",
                "    try:",
                "        canonical_url(url)",
                "    except InputError:",
                "        pass",
            ]
        ),
        "from nlp_retrieval.errors import InputError\nfrom nlp_retrieval.systems.evidence.index.urls import canonical_url",
    ),
    "evidence/reading/cleaning.py": _each(
        "clean_text(text)", "from nlp_retrieval.systems.evidence.reading.cleaning import clean_text"
    ),
    "evidence/reading/pdf.py": _each(
        "join_lines(text), join_lines(('a-' + chr(10)) * 50_000)",
        "from nlp_retrieval.systems.evidence.reading.pdf import join_lines",
    ),
    "evidence/reading/quality.py": _each(
        "quality._NAME.fullmatch(text), quality._BAD_IN_URL.search(text)",
        "from nlp_retrieval.systems.evidence.reading import quality",
    ),
    "evidence/reading/markup/page.py": _each(
        "page._DOUBT_MARKS.split(text)", "from nlp_retrieval.systems.evidence.reading.markup import page"
    ),
    "evidence/reading/markup/raised.py": _each(
        "[pattern.search(one) for pattern in (raised._IN_TEXT, raised._NOTE_NAMES, raised._NOTE_PLACE) "
        "for one in (text, 'x[1' * 5_000, 'x[' + '1,' * 5_000)]",
        "from nlp_retrieval.systems.evidence.reading.markup import raised",
    ),
    "evidence/web_research/full_text/answers.py": _each(
        "[read(one, range(9)) for read in (read_numbers, read_stances) for one in (text, '[' + text, [text], '1 ' * N)]",
        "from nlp_retrieval.systems.evidence.web_research.full_text.answers import read_numbers, read_stances",
    ),
    "evidence/verifiers/signals/names.py": _each(
        "unmatched_names(text, 'World Health Organization')", f"{_SIGNALS}.names import unmatched_names"
    ),
    "evidence/verifiers/signals/counts.py": _each(
        "miscounted(text, '1 day, 2 hours'), miscounted('1 day and 2 hours', text)", f"{_SIGNALS}.counts import miscounted"
    ),
    "evidence/verifiers/signals/negation.py": _each(
        "negations(text), Opposites.of(text).met(text)", f"{_SIGNALS}.negation import Opposites, negations"
    ),
    "evidence/verifiers/training/plants.py": _each(
        "negated(JudgedPair(text, 'b', 'support'), random.Random(0))",
        "import random\nfrom nlp_retrieval.systems.evidence.verifiers.training.pairs import JudgedPair\n"
        "from nlp_retrieval.systems.evidence.verifiers.training.plants import negated",
    ),
}
