"""No text makes a step over it work longer than in proportion to its length: 4 times the text, less than 8 times the work.

Every module that has patterns, and every step over a text that has none, is named here with the texts that it is worst at. Each
is measured by itself at two lengths, in processor time, so that neither a slow machine nor a busy one changes the answer.
"""

from __future__ import annotations

import pytest
from documents_model.patterns import DOCUMENTS

from .conftest import Tally
from .growth import LENGTH, ROOM, UNENDING, check_growth, in_prose, measure, modules_with_patterns

# by module, what is run: N is the length; nothing is looked at but the time
ATTACKED = {
    "text/sentences.py": in_prose("sentences_of(text)", "from nlp_retrieval.text.sentences import sentences_of"),
    "text/abbreviations.py": """
from nlp_retrieval.text.abbreviations import abbreviations_of
for text in ("(" * N, "()" * N, "(NDC)" * N, "a b c (ABC) " * N, "ABC (a b c) " * N, "(" + "A" * N, "A" * N + " (",
             "AB" * N + "(AB)", "a " * N + "(AAAAAAAAAAAA)", "." * N, ". " * N, "a/-" * N + "(a b)"):
    abbreviations_of(text[:N])
""",
    "core/secrets.py": """
from nlp_retrieval.core.secrets import is_secret_name, without_secrets
for text in ("://" + ":" * N, "://" + "a" * N, "://a:" * N, "https://" * N, "Bearer" + " " * N, "Bearer " * N, "sk-" * N,
             "?" * N,
             "?key" * N, "?" + "key" * N, "?" + "-" * N, "eyJ" * N, "eyJaaaaaaaa." * N, "AKIA" * N, "AIza" * N, "xoxb-" * N,
             "Authorization: Basic " * N, "&;?=" * N, "gh" * N):
    without_secrets(text)
for text in ("api_" * N, "Key" * N, "secret" * N, "_" * N, "aA" * N, "token" * N + "x"):
    is_secret_name(text)
""",
    "retrievers/link_graph/clauses.py": """
from nlp_retrieval import SearchableItem
from nlp_retrieval.retrievers.link_graph.clauses import clauses_of, names_in
for text in ("the is " * N, "the A, " * N, "A's " * N, " " * N, "a" * N, "the " + "A" * N + " of a", "?" * N,
             "of the " * N, "\\"'(" * N):
    clauses_of("who " + text[:N] + "?")
    clauses_of("who " + text[:900] + "?")
for text in (" (" * N, "A " * N, "A of " * N, "the " * N, "A" * N, "(" * N):
    names_in(SearchableItem(item_id="1", content=text[:N], metadata={"title": text[:N]}), text[:N], 6)
""",
    "loaders/database.py": """
from nlp_retrieval.loaders.database import hide_secrets, scrub
for text in (":" * N, "a://" * N, "@" * N + ":" * N, ":@" * N, "a:" + "@" * N, "?" + "pass" * N, "?" * N, "?pass=" * N,
             ";" * N,
             "&pass" * N + "="):
    hide_secrets(text)
    scrub(text, "a://b:c@d?password=e")
""",
    "text/titles.py": """
from nlp_retrieval.text.titles import normalize_title
for text in ("(" * N, "()" * N, "()" + " " * N + "x", "(" + " " * N, "&#" + "1" * N, "&#1" * N, "&" + "a" * N, "&a" * N,
             "." * N,
             "1." * N, ") " * N, "&#x" + "f" * N + ";"):
    normalize_title(text)
""",
    "text/registered_names.py": """
from nlp_retrieval.text.registered_names import has_other_brackets
for text in ("[" * N, "[]" * N, "]" * N, "[" + "a" * N, "[]:" + "1" * N, "[a]:" * N):
    has_other_brackets(text)
""",
    "text/numbers.py": """
from nlp_retrieval.text.numbers import compare_numbers, numbers_of
for text in ("1" * N, "1," * N, "1 " * N, "1." * N, "one " * N, "twenty-" * N, "1,000" * N, "1%" * N, "-1" * N, "half" * N,
             ("111" + chr(0xa0)) * N, "1/2 " * N, "1:" * N, "1e" + "9" * N, "10^" + "9" * N, "$(" * N, "minus " * N,
             "1 million " * N, "two hundred and " * N, chr(0xbd) * N, chr(0x4e07) * N, ("1" + chr(0x4e07)) * N, "1 below " * N):
    text = text[:N]
    numbers_of(text)
    compare_numbers("9", text)
""",
    "text/numbers.py, marks": """
from nlp_retrieval.text.numbers import decimal_mark, plain_digits
for text in ("1" * N, "1.111" * N, "1,111" * N, ".111" * N, "1,1 " * N, "the " * N, "die " * N, chr(0x663) * N, chr(0x3b1) * N,
             "1.1%" * N, chr(0xff11) * N):
    decimal_mark(plain_digits(text))
""",
    "text/dates.py": """
from nlp_retrieval.text.dates import dates_of, month_of
for text in ("1" * N, "1 " * N, "1, " * N, "1-" * N, "1/" * N, "1.1." * N, "1st and " * N, "March " * N, "March 1 " * N,
             "March 1-" * N, "12 March 2019, " * N, "2019-" * N, "2019-03-" * N, "2019-03-12" * N, "May" * N, "Sept." * N,
             "1 to 2 " * N, " of March" * N, "," * N, " " * N):
    dates_of(text)
month_of("." * N)
""",
    "text/quantities.py": """
from nlp_retrieval.text.quantities import changed_quantities, quantities_of, years_of
for text in ("1" * N, "1,000," * N, "1-" * N, "1 - " * N, "2030 " * N, "2030-" * N, "1 t of " * N, "1% " * N, "one " * N,
             "by " * N, "below 2010 levels " * N, "$" * N, "relative to " * N, "approximately " * N, "1" + " " * N,
             "BAU " * N, "1.1." * N):
    quantities_of(text)
    years_of(text)
changed_quantities("1% " * N, "2% " * N)
""",
    "text/units.py": """
from nlp_retrieval.text.units import CURRENCY_BEFORE, UNIT
for text in ("t of " * N, " " * N, "metric " * N, "US" * N, "$ " * N, "Mt CO2 " * N, "square " * N, "-" * N):
    UNIT.match(text)
    CURRENCY_BEFORE.search(text[-50:])
""",
    "core/unicode.py": """
from nlp_retrieval.core.unicode import normalize
for form in ("NFC", "NFD", "NFKC", "NFKD"):
    for text in (*MARKED, "e" + chr(0x323) + chr(0x301) * N, chr(0x304b) + (chr(0xff9e) + chr(0x315)) * N, chr(0xf73) * N,
                 (chr(0x344) + chr(0x315)) * N, chr(0x3002) * N, (chr(0x1e09) + chr(0x315)) * N):
        normalize(form, text)
""",
    "core/queries.py": """
from nlp_retrieval.core.queries import has_no_words
for text in (" " * N, "'" * N, "_" * N):
    has_no_words(text)
""",
    "core/filters.py": """
from nlp_retrieval.core.filters import instant_of, period_of
for text in ("2" * N, "2019-" * N, "2019-01-01T" + "1" * N, "2019-01-01T00:00:00." + "0" * N, "2019-01-01T00:00+" + "0" * N):
    instant_of(text)
    period_of(text)
""",
    "core/files/json_text.py": """
from nlp_retrieval.core.files.json_text import parse_json
for text in ('"' * N, '"' + chr(92) * N, '"' + (chr(92) + "ud800") * N, "[" * N, '["[' * N, '{"a":' * N,
             '"' + "[" * N + '"', "[]" * N):
    try:
        parse_json(text)
    except ValueError:
        pass
""",
    "core/files/columns.py": """
from nlp_retrieval.core.files import columns
begin = b"{'descr': '<i8', 'fortran_order': False, 'shape': ("
for text in (begin + b"1, " * N, begin + b"1," + b" " * N, begin + b"1,), }" + b" " * N, begin + b"1" * N, begin * N):
    columns._FORM.fullmatch(text)
    columns._FORM.match(text)
""",
    "core/files/yaml_text.py": """
from nlp_retrieval.core.files.yaml_text import parse_yaml
from nlp_retrieval.errors import ConfigurationError
for text in ("1" * N, "1_" * N, "1:" + "5:" * N, "0." + "_" * N, "0x" + "_" * N, "+" * N, "." * N, "[" * N, "&a " * N,
             "*" * N, "! " * N):
    try:
        parse_yaml("x: " + text, "here")
    except ConfigurationError:
        pass
""",
    "loaders/files.py": """
import os, tempfile
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.files import read_json_list
with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    for text in (" " * N, "[" + " " * N, "[1" + " " * N, "[" + "1" * N, "[" + "1," * N, '["' + "a" * N, "[" * N):
        file.seek(0)
        file.truncate()
        file.write(text)
        file.flush()
        try:
            list(read_json_list(file.name))
        except SourceError:
            pass
""",
    "loaders/judgements.py": """
from nlp_retrieval.loaders.judgements import _GRADE
import re
for text in ("1" * N, "+" * N, " " * N, " 1" * N):
    _GRADE.fullmatch(text)
    re.split(r"[ \\t\\r\\f\\v]+", text)
""",
    "loaders/topics.py": """
import tempfile
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.topics import TopicsLoader
for text in ("<" * N, "</" * N, "<a" * N, "<a-" * N, "<a " * N, "<top>" * N, "Number" * N, "a" * N, "<!--" * N, "<![CDATA[" * N,
             "<?" * N, "<!A" * N, "<!A[" * N, "<!A[]" * N, "<!A" + "[]" * N, "<num>1" + "<b>" * N, "<num>1<title>" + "<x>" * N,
             "<num>1<title>" + "<x></x>" * N, "<num>1" + "<desc>" * N, "<num>1<title>" + "&" * N, "<num>1<title>" + "&amp" * N,
             "<num>1<title>" + "&#1" * N, "<num> Number" + " " * N, "<num>1<narr>Narrative" + chr(10) * N, "</num>" * N,
             "<num>1<con>Concept" * N, "<num " + "a=" * N + ">", "<num>1<title>" + "<br/>" * N, "<p>" * N + "</p>" * N):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        for opening in ("<top>", "<topic a='" + "b='c' " * (N // 10) + ">", "<topic>"):
            file.seek(0)
            file.truncate()
            file.write(opening + text)
            file.flush()
            try:
                list(TopicsLoader(file.name, file.name).read())
            except SourceError:
                pass
""",
    "loaders/chunking.py": """
from nlp_retrieval import ChunkingLoader
from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.models import SearchableItem
class Texts(BaseLoader):
    name = "texts"
    def stream(self):
        for n, text in enumerate((". " * N, "." * N, " " * N, "a" * N, chr(0x6771) * N, chr(0x3002) * N, '."' * N, "!?" * N)):
            yield SearchableItem(item_id=str(n), content=text)
for unit in ("words", "characters"):
    sum(1 for _ in ChunkingLoader(Texts(), unit=unit).stream())
""",
    "processors/rules.py": """
from nlp_retrieval.processors.rules import ClauseSplit
ClauseSplit().process([" " * N, " that" * N, ". " * N, ", " * N, "a." * N, "by " * N, "of the" * N, "a. " * N, "(" * N])
""",
    "processors/entity_phrases.py": """
from nlp_retrieval import EntityPhrases
EntityPhrases().process(['"' * N, '"a' * N, "(" * N, "A " * N, chr(0x201c) + "a" * N, "A" * N, "A, " * N, " " * N])
""",
    "rerankers/multi_signal/reranker.py": """
from nlp_retrieval.rerankers.multi_signal.reranker import _reads_profile
for text in ("a" * N, "_" * N, "a." * N):
    _reads_profile(text)
""",
    "rerankers/listwise.py": """
from nlp_retrieval.rerankers.listwise import read_permutation
for text in ("[" * N, "]" * N, "[1" * N, "[1," * N, "[" + "1," * N, "[" + " " * N, "9" * N, "[1]" * N, "[;,]" * N, "1 " * N):
    read_permutation(text, 20)
""",
    "lm/reading.py": """
from nlp_retrieval.lm.reading import final_answer, read_passage, read_phrases, unwrapped
for text in ("<think" * N, "<think>" * N, "<think " + "a" * N, "</think>" * N, "<think>" + "a </think>" * N, "<" * N,
             "[THINK]" * N, "<|channel|>final " * N, "<|message|>" * N, "<|channel|>final<|message|>" * N, "<a_" * N,
             "<" + "a" * N + "_think>", '{"a": "<think>' * N, "here is my response:" * N,
             "here is my thought process:" + " " * N, "analysisA" + "final" * N):
    final_answer(text)
    final_answer("analysisWe " + text)
for text in (chr(10) * N, " " * N, "- " * N, "-" * N, "[[" * N, '{"a":' * N, "a" + " " * N + ";", '"' * N, '" ,' * N,
             "phrase " * N,
             "query" * N, "search query: " * N, "1. " * N, "```" * N, "```" + "a" * N, "(1" * N, (" " * 500 + chr(10)) * 200):
    read_phrases(text, "claim", 5, 5)
    read_passage(text, "claim", 5)
    unwrapped(text)
""",
    "lm/asking.py": """
from nlp_retrieval.lm import asking
for text in ("[[ ## " * N, "[[ ## " + "a" * N, "[[" * N, "[[##" + "a" * N + " ##", "[[ ## a ## " * N):
    asking._MARKER.findall(text)
    asking._MARKER.split(text)
""",
    "lm/language_model.py": """
from nlp_retrieval.lm import language_model
language_model._VARIABLE.fullmatch("A" * N + "-")
for text in ("gpt-5" + ".5" * N, "gpt-5-" + "a" * N + "/", "o1" + "-" * N):
    language_model._REASONING_MODEL.fullmatch(text)
""",
    "lm/answering.py": """
from nlp_retrieval.lm.answering import read_answer
for text in ("1" * N, "1." * N, "1, " * N, "1 sentence " * N, "[" * N, "[1" * N, "[1]" * N, "[1. " * N, "1,sentence" * N,
             "1.1 " * N, " " * N, "[" + "1" * N + "]"):
    read_answer({"answer": text, "citations": text, "reasoning": text})
    read_answer({"answer": "x " + text, "citations": [text] * 200})
""",
    "evaluation/answers.py": """
from nlp_retrieval.evaluation.answers import answers_agree
for text in ("a " * N, "the " * N, "an" * N, "a" * N, "." * N, " " * N, chr(0x2013) * N, ("a" + chr(0x2013)) * N):
    answers_agree(text, [text, "the"])
""",
    "retrievers/link_graph/extractors.py": """
from nlp_retrieval.retrievers.link_graph.extractors import sentence_at
for text in ("." * N, "." + ")" * N, "!?" * N, '."' * N, "." * N + '"' * N, "a." * N, ". " * N, chr(0x3002) * N,
             chr(10) * N, "A. " * N):
    for place in (0, len(text) // 2, len(text) - 1):
        sentence_at(text, place, place + 1)
""",
    "text/mentions.py": """
from nlp_retrieval.text import mentions
for text in ("a&" * N, "a" * N, '"' * N, '"a' * N, "a'" * N, chr(0x201c) * N, chr(0x201c) + "a" * N, ", " * N,
             "," + " " * N, "1999" * N):
    mentions._WORD.findall(text)
    mentions._QUOTED.findall(text)
    mentions._YEAR.findall(text)
    mentions._POSSESSIVE.sub("", text)
""",
    "retrievers/link_graph/mentions.py": """
from nlp_retrieval.retrievers.link_graph.mentions import Phrase
from nlp_retrieval.text.surfaces import surface_of
phrase = Phrase(surface_of("Aaaa bbbb Aaaa cccc"))
for text in ("aaaa" + " " * N, "aaaa " * N, "aaaa bbbb " * N, "aaaa s " * N, "aaaa" + " s" * N,
             "aaaa" + "_" * N + "bbbb" + "_" * N):
    phrase.search(text)
""",
    "text/surfaces.py": """
from nlp_retrieval.text.surfaces import spans_of, words_of
for text in ("a" + chr(0x301) * N, ("a" + chr(0x301)) * N, "a" + chr(0xad) * N, "'" * N, "a's" * N, "a'" * N,
             chr(0x301) * N, "a's" + "s" * N):
    words_of(text)
    spans_of(text)
""",
    "evaluation/trec.py": """
from nlp_retrieval.evaluation import trec
for text in ("1" * N, "1." * N, "." * N, "1e" * N, "1" * N + "e", "+" * N):
    trec._NUMBER.fullmatch(text)
""",
    "core/files/records.py": """
from nlp_retrieval.core.files.records import decode_id, encode_id
for text in (" " * N, "%" * N, "a" * N, chr(0x7f) * N, "%4" * N):
    decode_id("%:" + encode_id(text))
""",
    "core/files/atomic.py": """
from nlp_retrieval.core.files.atomic import file_names
file_names(["con." * N, "a" * N, "/" * N, "." * N, "con" + "." * N, *("same" for _ in range(300))])
""",
    "benchmarks/cost.py": """
from nlp_retrieval.benchmarks import cost as prices
for text in ("a" * N, "/" * N, "a/" * N, "a/" + " " * N):
    prices._MODEL.fullmatch(text)
""",
    "benchmarks/settings.py": """
import re
for text in (">" * N, "a" * N, "> " * N):  # whether a searcher in a file is written as an expression
    re.search(r">>|[+*%]", text)
""",
    "core/components/component.py": """
import re
for text in ("aB" * N, "a" * N, "A" * N):  # a name for a class without one
    re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
""",
    "evaluation/measures.py": """
from nlp_retrieval.evaluation import measures
for text in ("a" * N, "a(" + "b" * N, "a@" + "1." * N, "a(b)@1" + "(" * N, "rbp(p=" + "1" * N, "rbp(p=" + "." * N):
    measures._WRITTEN.fullmatch(text)
    measures._RBP.fullmatch(text)
""",
    "cli/app.py": """
import re
for text in ("{" * N, " <" * N, " <list[" * N, " <a" * N):  # what it does to the names of arguments and options
    re.sub(r"[{}]", "", text)
    re.sub(r" <(?:list\\[)?(.+?)\\]?>$", "", text)
""",
    "cli/components.py": """
from nlp_retrieval.cli.components import _first_sentence, _plain
for text in ("." * N, "ab. " * N, "a" * N, ":a:`" * N, ":" + "a" * N, ":a:`" + "b" * N, "b." * N):
    _first_sentence(text)
    _plain(text)
""",
    "reports/terminal.py": """
from nlp_retrieval.reports.terminal import _broken
for text in (">" * N, "a+" * N, "/ " * N, "a-" * N, "a" * N, "> +/-" * N):
    _broken(text, 20)
""",
    "reports/findings.py": """
from nlp_retrieval.reports.findings import _bare
for text in ("0." * N, "0" * N, "." * N, "10." * N):
    _bare(text)
""",
    "reports/snippets.py": """
from nlp_retrieval.reports.snippets import common_words, pieces, shared_spans, snippet
for text in ("a" * N, "ab " * N, "_" * N, "a_" * N, chr(0x6c17) * N, " " * N):
    common_words([text], [text])
    passage = text[:5000]  # a run keeps no more of it
    spans = shared_spans(passage, text)
    pieces(passage, snippet(passage, spans), spans)
""",
    "reports/page/templating.py": """
from nlp_retrieval.reports.page.templating import _breakable
for text in ("-" * N, "a-" * N, "a" * N, "_" * N):
    _breakable(text)
""",
    "gate/writing.py": """
from nlp_retrieval.gate import writing
for text in (chr(92) * N, "|" * N, "*_" * N, chr(0) * N):
    writing._escaped(text), writing._NOT_IN_XML.sub("", text)
""",
    "reports/tables.py": """
from nlp_retrieval.reports import tables as table_files
for text in (chr(92) * N, "|" * N, "*_" * N, "<" * N):
    table_files._markdown(text)
""",
    "text/words.py, words": """
from nlp_retrieval.text.words import Words
for words in (Words(), Words("tr", accents="fold"), Words(pattern="a(?:[^b]*b)?")):
    for text in ("a" * N, "a'" * N, "'" * N, "a's" * N, "a" + chr(0x301) * N, ("a" + chr(0x301)) * N, chr(0x6c17) * N, "_" * N,
                 chr(0xe19) + chr(0xe49) * N, chr(0xac00) * N, (chr(0x6c17) + "a'") * N, chr(0xfdfa) * (N // 20), " a" * N,
                 chr(0x3099) * N, "I" * N, "".join(map(chr, range(97, 123))) * (N // 26)):
        words.split(text, passage=True)
""",
    "text/words.py": """
from nlp_retrieval.text.words import unaccented
for text in ("a" + chr(0x301) * N, chr(0x5b0) * N, chr(0xac00) * N, chr(0x1e09) * N):
    unaccented(text)
""",
    "text/words.py, stems": """
from nlp_retrieval.text.words import Stems
stems = Stems("english")
for text in ("a" * N, chr(0x301) * N, ("a" + chr(0x301)) * N, "a" + chr(0x301) * N, chr(0x6c17) * N, "_" * N, "a_" * N):
    stems.words(text)
    stems.spans(text)
""",
    "encoders/word_vectors.py": """
import tempfile
from pathlib import Path
from nlp_retrieval.encoders.word_vectors import read_word_vectors
from nlp_retrieval.errors import ModelError
with tempfile.TemporaryDirectory() as folder:
    for text in ("1" * N, "1 " * N, " " * N, "9 9 9" + chr(10) * N):
        (Path(folder) / "vectors.txt").write_text(text)
        try:
            read_word_vectors(Path(folder) / "vectors.txt")
        except ModelError:
            pass
""",
    "core/unicode.py: surrogates": """
from nlp_retrieval.core.unicode import find_lone_surrogate
for text in (chr(0xd7ff) * N, chr(0xd800) * N):
    find_lone_surrogate(text)
""",
    "core/components/trust_rules.py": """
from nlp_retrieval.core.components import trust_rules as trust
for text in ("a" * N, "a." * N, "a-" * N, "a/" * N, "a" * N + "/" + "-" * N, "cuda:" + "1" * N, "." * N, "a.." * N):
    for pattern in (trust._HUB_NAME, trust._DEVICE, trust._REVISION):
        pattern.fullmatch(text)
""",
    "core/files/model_files.py": """
from nlp_retrieval.core.files import model_files as model_references
for text in ("config" + "." * N, "config." * N, "sentence_" + "a" * N + "_config", "sentence_" * N, ".index" * N + ".json",
             "a" * N):
    model_references._SETTINGS.fullmatch(text)
""",
    "reports/trackers.py": """
from nlp_retrieval.reports.trackers import _names
_names(["@" * N, "/" * N, "./" * N, "." * N, "\\n" * N])
""",
    "reports/trackers.py, wandb": """
import re
re.sub(r"[^A-Za-z0-9_.-]", "_", "/" * N)  # what _fill does of a configuration's name
""",
    "retrievers/feedback.py": """
from nlp_retrieval.retrievers.feedback import NamedSubjects
names = NamedSubjects(["Papua New Guinea", "the the the", "a"], "country")
for text in ("the " * N, "the" + " " * N, "papua new " * N, " " * N, "Papua New Guinea " * N, "'s" * N, "a" * N):
    names.read(text)
""",
    "cli/console.py": """
from nlp_retrieval.cli.console import _SETTING
for text in ("pass " * N, "pass ab=" * N, "pass ab=" + '"' * N, "pass " + "a" * N, "pass ab=" + "a." * N):
    _SETTING.sub("", text)
""",
    "service/endpoints.py": """
from nlp_retrieval.service.endpoints import _KEY, _PATH
for text in ("/" * N, "/a" * N, " /" * N, "a" * N, "a/" * N, " a" * N, "/a " * N, "http://" * N, "/" + "a" * N + ":", ": /" * N,
             "." * N):
    _PATH.sub("...", text), _KEY.fullmatch(text)
""",
    "cli/search.py": "from nlp_retrieval.cli import search\nsearch._CONTROL.sub('', chr(0x9b) * N)",
    "retrievers/pyserini/jvm.py": """
import tempfile
from pathlib import Path
from nlp_retrieval.errors import JavaError
from nlp_retrieval.retrievers.pyserini import jvm as lucene_jvm
with tempfile.TemporaryDirectory() as folder:
    for text in ('JAVA_VERSION="' + "1." * N, 'JAVA_VERSION="' * N, 'MODULES="' + " a" * N, 'MODULES="' * N):
        (Path(folder) / "release").write_text(text)
        try:
            lucene_jvm.inspect_java(Path(folder))
        except JavaError:
            pass
""",
    "benchmarks/checked.py": """
from nlp_retrieval.benchmarks.checked import _QUOTED
for text in ("'" * N, "'a" * N, "a" * N):
    _QUOTED.findall(text)
""",
    "agents/trajectory.py": """
from nlp_retrieval.agents.trajectory import cited_in
for text in ("[" * N, "[a" * N, "[a]" * N, "[" + "a" * N, "[" + "a," * N + "]", chr(0x3010) * N, "[a " * N + "]"):
    cited_in(text, {"a"})
""",
    "agents/transcripts.py": """
from nlp_retrieval.agents.transcripts import ids_in
for text in ("docid" * N, "docid:" * N, "docid " * N, "docid:" + "a" * N, "docid" + " " * N, "docid: a " * N, '["' * N):
    ids_in(text)
""",
    "lm/endpoint.py": """
import re
for text in ("    endpoint:" * N, chr(10) * N, ("    endpoint:" + chr(10)) * N):
    re.sub(r"(?m)^    endpoint:.*$", "", text)
""",
    **DOCUMENTS,
}


def test_every_module_with_a_pattern_is_attacked() -> None:
    systems = modules_with_patterns(ROOM / "systems")
    assert modules_with_patterns(ROOM) - systems - set(ATTACKED) == set()


@pytest.mark.parametrize(
    ("code", "length"),
    [
        ("re.findall('a+b', 'a' * N)", LENGTH),  # a pattern
        ("unicodedata.normalize('NFC', 'a' + chr(0x315) * N + chr(0x300) * N)", LENGTH // 3),  # insertion
    ],
)
def test_a_quadratic_step_is_seen(code: str, length: int) -> None:
    attacks = {"linear": "for text in ('a' * N,): text.split()", "planted": f"import re, unicodedata\n{code}"}
    grown, _ = measure(attacks, length, UNENDING)
    assert grown["linear"] == []
    assert len(grown["planted"]) == 1


def test_an_exponential_pattern_is_ended_by_the_kernel() -> None:
    grown, ending = measure({"planted": "import re\nre.findall('(a+)+b', 'a' * 40)"}, LENGTH, 2)
    assert (grown, ending) == ({"planted": None}, "too long")


def test_no_text_makes_a_step_of_these_work_longer_than_in_proportion(tally: Tally) -> None:
    names = ("core/secrets.py", "core/unicode.py", "evaluation/trec.py", "loaders/database.py", "loaders/topics.py")
    names += (
        "text/sentences.py",
        "text/titles.py",
        "service/endpoints.py",
        "documents/blocks.py",
        "documents/markdown.py, parser",
    )
    check_growth({name: ATTACKED[name] for name in names}, 1, tally)


@pytest.mark.soak
def test_no_text_makes_a_step_work_longer_than_in_proportion(effort: int, tally: Tally) -> None:
    check_growth(ATTACKED, effort, tally)
