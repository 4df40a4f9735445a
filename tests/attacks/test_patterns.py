"""No text makes a step over it work longer than in proportion to its length: 4 times the text, less than 8 times the work.

Each step is measured by itself at two lengths, in processor time, so that neither a slow machine nor a busy
one changes the answer.
"""

from __future__ import annotations

import pytest
from documents_model.patterns import DOCUMENTS

from .growth import check_growth, in_all

_FROM = "from nlp_retrieval"

ATTACKED = {
    "abbreviations": in_all("abbreviations_of(text)", f"{_FROM}.text.abbreviations import abbreviations_of"),
    "clauses": in_all(
        "clauses_of('who ' + text + '?'), "
        "names_in(SearchableItem(item_id='1', content=text, metadata={'title': text}), text, 6)",
        f"{_FROM} import SearchableItem\n{_FROM}.retrievers.link_graph.clauses import clauses_of, names_in",
    ),
    "model answers": in_all(
        "final_answer(text), final_answer('analysisWe ' + text), read_phrases(text, 'claim', 5, 5), "
        "read_passage(text, 'claim', 5), unwrapped(text)",
        f"{_FROM}.lm.reading import final_answer, read_passage, read_phrases, unwrapped",
    ),
    "normal forms": """
from nlp_retrieval.core.unicode import find_lone_surrogate, normalize
for form in ("NFC", "NFD", "NFKC", "NFKD"):
    for text in (*MARKED, "e" + chr(0x323) + chr(0x301) * N, chr(0x304b) + (chr(0xff9e) + chr(0x315)) * N, chr(0xf73) * N,
                 (chr(0x344) + chr(0x315)) * N, chr(0x3002) * N, (chr(0x1e09) + chr(0x315)) * N):
        normalize(form, text)
for text in (chr(0xd7ff) * N, chr(0xd800) * N):
    find_lone_surrogate(text)
""",
    "numbers": in_all(
        "numbers_of(text), compare_numbers('9', text), decimal_mark(plain_digits(text))",
        f"{_FROM}.text.numbers import compare_numbers, decimal_mark, numbers_of, plain_digits",
    ),
    "quantities": in_all("quantities_of(text), years_of(text)", f"{_FROM}.text.quantities import quantities_of, years_of"),
    "secrets": in_all(
        "without_secrets(text), is_secret_name(text)", f"{_FROM}.core.secrets import is_secret_name, without_secrets"
    ),
    "sentences": in_all(
        "sentences_of(text), [sentence_at(text, place, place + 1) for place in (0, len(text) // 2, len(text) - 1)]",
        f"{_FROM}.text.sentences import sentences_of\n{_FROM}.retrievers.link_graph.extractors import sentence_at",
    ),
    "titles": in_all(
        "normalize_title(text)",
        f"{_FROM}.text.titles import normalize_title",
    ),
    "words": in_all(
        "[words.split(text, passage=True) for words in ALL], stems.words(text), unaccented(text)",
        f"""{_FROM}.text.words import Stems, Words, unaccented
ALL, stems = (Words(), Words("tr", accents="fold"), Words(pattern="a(?:[^b]*b)?")), Stems("english\")""",
    ),
    "YAML": in_all("parse_yaml('x: ' + text, 'here')", f"{_FROM}.core.files.yaml_text import parse_yaml"),
    **DOCUMENTS,
}


def test_no_text_makes_a_step_of_these_work_longer_than_in_proportion() -> None:
    names = ("secrets", "normal forms", "titles")
    check_growth({name: ATTACKED[name] for name in names}, 1)


@pytest.mark.soak
def test_no_text_makes_a_step_work_longer_than_in_proportion(effort: int) -> None:
    check_growth(ATTACKED, effort)
