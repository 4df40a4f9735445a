"""Small reports, each with the citations that a person reads in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.documents import clean_text
from nlp_retrieval.systems.evidence.citations.report import read_report

A, B, C = "https://a.example/one", "https://b.example/two_x_y/", "https://c.example/three?q=1&r=2"
LIST = f"\n\n## References\n\n[1] First title. {A}\n[2] Second title. {B}\n[3] Third title. {C}\n"
URLS = {"1": A, "2": B, "3": C, "": C}


def cited(text: str) -> list[tuple[str, str]]:
    return [(one.mark, one.sentence) for one in read_report(text).citations]


def addresses(text: str) -> list[tuple[str, str]]:
    return [(one.url, one.sentence) for one in read_report(text).citations]


STYLES = {
    "before the full stop": ("Bees dance [1]. Ants do not [2].", [("1", "Bees dance."), ("2", "Ants do not.")]),
    "after the full stop": ("Bees dance. [1] Ants do not. [2]", [("1", "Bees dance."), ("2", "Ants do not.")]),
    "a range": ("Bees dance [1\u20133].", [(mark, "Bees dance.") for mark in "123"]),
    "raised, two adjacent": ("Bees dance.<sup>12</sup>", [("1", "Bees dance."), ("2", "Bees dance.")]),
    "raised, with a page": (
        "Bees dance.<sup>1</sup><sup>:14</sup> Ants do not<sup>2,3</sup>.",
        [("1", "Bees dance."), ("2", "Ants do not."), ("3", "Ants do not.")],
    ),
    "a range of links": ("Bees dance [[1]](#a)\u2013[[3]](#c).", [(mark, "Bees dance.") for mark in "123"]),
    "an assistant's": (
        "Bees dance\u30101\u2020source\u3011. Ants do not\u30102\u3011.",
        [("1", "Bees dance."), ("2", "Ants do not.")],
    ),
    "with a word": (
        "Bees dance [cite: 1, 2]. Ants do not [Source 3].",
        [("1", "Bees dance."), ("2", "Bees dance."), ("3", "Ants do not.")],
    ),
    "as people write several": (
        "Bees dance [1 and 2]. Ants [1 to 3], [1, 2, and 3] do not [1~2] in Ref. 3.",
        [(mark, "Bees dance.") for mark in "12"] + [(mark, "Ants do not in.") for mark in "123123123"],
    ),
    "beside code": ("Bees dance `x[2]` [1].\n\n```\ny[3]\n```\n\n    z[3]\n", [("1", "Bees dance x[2].")]),
    "of tasks": ("- [x] Bees dance [1].\n- [ ] Ants do not [2].", [("1", "Bees dance."), ("2", "Ants do not.")]),
    "raised by carets": (
        f"Bees dance^1^. Ants do not ^[2]^. Nor do wasps^3^[Frisch, 1965]({C}).",
        [("1", "Bees dance."), ("2", "Ants do not."), ("3", "Nor do wasps."), ("", "Nor do wasps.")],
    ),
    "beside other intervals": (
        "From [0, 1], in [2019], by (3), IQR: [1-3], KI 95 % [1; 3], between [2, 3] [1].",
        [("1", "From [0, 1], in [2019], by (3), IQR: [1-3], KI 95 % [1; 3], between [2, 3].")],
    ),
}


@pytest.mark.parametrize(("text", "expected"), STYLES.values(), ids=STYLES.keys())
def test_marks_are_read(text, expected):
    report = read_report(text + LIST)
    assert [(one.mark, one.sentence) for one in report.citations] == expected
    assert [one.url for one in report.citations] == [URLS[mark] for mark, _ in expected]
    assert [one.number for one in report.citations] == list(range(1, len(expected) + 1))


LISTS = {
    "brackets": f"## Sources\n\n[1] One. {A}\n[2] Two. {B}",
    "definitions": f'[1]: {A} "One"\n[2]: {B} "Two"',
    "numbers": f"# Literatur\n\n1. One. {A}\n2. Two. {B}",
    "points below": f"## Sources\n\n1. One\n   - URL: {A}\n2. Two\n   - URL: {B}",
    "no heading": f"---\n\n[1] One. {A}\n\n[2] Two. {B}",
    "a table": f"## References\n\n| # | Title | URL |\n|--|--|--|\n| 1 | One | {A} |\n| [2] | Two | {B} |",
}


@pytest.mark.parametrize("entries", LISTS.values(), ids=LISTS.keys())
def test_lists_of_references_are_read(entries):
    report = read_report(f"# Bees\n\nBees dance [1]. Ants do not [2].\n\n{entries}\n")
    assert [(one.mark, one.url, one.title) for one in report.citations] == [("1", A, "One"), ("2", B, "Two")]
    assert (report.title, report.missing, report.unused) == ("Bees", [], [])


def test_an_entry_without_a_url_hides_none_with_it():
    report = read_report(f"Bees dance [1].\n\n## Notes:\n\n[1] Hearsay.\n\n## Sources\n\n[1] First. {A}\n[1] Again. {B}\n")
    assert [one.url for one in report.citations] == [A]


@pytest.mark.parametrize(
    ("mark", "names"),
    [
        ("[S1]", ["S1"]),
        ("【3:0†source】", ["3:0"]),
        ("[@frisch1965; @doe2000, p. 3]", ["frisch1965", "doe2000"]),
        ("citeturn0search3turn12view0", ["turn0search3", "turn12view0"]),
        (":contentReference[oaicite:0]{index=0}", ["oaicite:0"]),
    ],
)
def test_what_looks_like_a_citation_and_has_no_entry_is_missing(mark, names):
    report = read_report(f"Bees dance {mark}.")
    assert [(one.mark, one.url, one.sentence) for one in report.missing] == [(name, "", "Bees dance.") for name in names]


def test_numbers_in_round_brackets_cite_where_no_others_do():
    assert cited(f"Bees dance (1). Ants do not (2, 3).{LIST}") == [
        ("1", "Bees dance."),
        ("2", "Ants do not."),
        ("3", "Ants do not."),
    ]
    assert cited(f"There are (1) bees, (2) ants and (3) wasps.{LIST}") == []
    assert cited(f"Bees dance [1]. They are aged (1 to 3), of (1 + 3).{LIST}") == [("1", "Bees dance.")]


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("doi:10.1000/ABC_d_e", "https://doi.org/10.1000/ABC_d_e"),
        ("doi.org/10.1000/x", "https://doi.org/10.1000/x"),
        ("arXiv:2101.00001v2", "https://arxiv.org/abs/2101.00001v2"),
        ("www.a.example/x", "https://www.a.example/x"),
    ],
)
def test_what_names_a_page_is_its_address(written, url):
    assert addresses(f"Bees dance ({written}).") == [(url, "Bees dance.")]
    assert addresses(f"Bees dance [1].\n\n## References\n\n1. One. {written}.\n") == [(url, "Bees dance.")]


WIKI, NEWS = "https://en.wikipedia.org/wiki/Bee", "https://www.nytimes.com/a/b"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (f"Bees dance [Wikipedia]({WIKI}). Ants do not.", ["Bees dance."]),
        (f"Bees dance. [Wikipedia]({WIKI}) Ants do not. [New York Times]({NEWS})", ["Bees dance.", "Ants do not."]),
        (f"Bees dance [New York Times]({NEWS}), [Wikipedia]({WIKI}).", ["Bees dance.", "Bees dance."]),
        (f"Bees visited [Paris]({WIKI}).", ["Bees visited Paris."]),
        (f"Bees dance. [Frisch]({A}) saw it.", ["Frisch saw it."]),
        (f'Bees dance <a href="{WIKI}">[1]</a>.', ["Bees dance."]),
    ],
)
def test_the_name_of_a_source_is_no_part_of_a_claim(text, sentences):
    assert [one.sentence for one in read_report(text).citations] == sentences


def test_footnotes_are_read():
    report = read_report(
        f"Bees dance.[^frisch] Ants do not [^2].\n\n[^frisch]: Frisch 1965. {A}\n    Second line.\n[^2]: Hearsay\n"
    )
    assert [(one.mark, one.sentence, one.url) for one in report.citations] == [
        ("frisch", "Bees dance.", A),
        ("2", "Ants do not.", ""),
    ]
    assert report.citations[1].title == "Hearsay"
    assert report.missing == []
    report = read_report(f'Ants do not. Bees <a href="{B}">dance[^1]</a>.\n\n[^1]: Frisch 1965. {A}\n')
    assert [(one.mark, one.sentence, one.url) for one in report.citations] == [
        ("1", "Bees dance.", A),
        ("", "Bees dance.", B),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"Bees dance ([Frisch]({A})).",
        f"Bees dance [[1]]({A}).",
        f"Bees dance (see <{A}>).",
        f"Bees dance {A}.",
        f"Bees dance ([Frisch][f]).\n\n[F]: {A}",
    ],
)
def test_a_link_that_names_a_source_is_taken_out(text):
    assert addresses(text) == [(A, "Bees dance.")]


def test_links_that_lead_nowhere_on_the_web_are_text():
    text = "[run](javascript:alert(1)) and [mail](mailto:a@b.example) and [below](#x) and [file](file:///etc/passwd)"
    assert read_report(text).citations == []
    report = read_report("Bees dance [1].\n\n[1]: javascript:alert(1)\n")
    assert [one.url for one in report.citations] == [""]
    assert [one.url for one in read_report("Bees dance [1].\n\n## References\n\n[1] x data:text/html,y").citations] == [""]


def test_lines_are_those_of_the_report():
    text = f"# Bees\n\nBees dance [1].\nAnts\ndo not [2].\n\n- One [1]\n- Two\n  goes on [2]\n\n| a |\n|--|\n| b [1] |\n{LIST}"
    assert [one.line for one in read_report(text).citations] == [3, 5, 7, 9, 13]


def test_entries_that_are_never_cited_are_found():
    text = f"Bees dance [1] ([b]({B})).{LIST}- Fourth {B}\n- Fifth https://e.example\n\n[^n]: Note\n"
    report = read_report(f"{text}\n[q]: https://q.example 'One\n~ two'\n")
    assert [(one.mark, one.title) for one in report.unused] == [
        ("2", "Second title"),
        ("3", "Third title"),
        ("", "Fifth"),
        ("n", "Note"),
        ("q", "One ~ two"),
    ]


def test_the_text_of_a_report_is_told_with_the_citations_of_each_sentence():
    report = read_report(
        "# Bees\n\nThey dance [1]. They hum [2, 1].\n\n- They rest.\n\n[1]: https://a.example\n[2]: https://b.example"
    )
    told = [(sentence.text, sentence.kind, sentence.block, sentence.citations) for sentence in report.sentences]
    assert told == [
        ("Bees", "heading", 0, ()),
        ("They dance.", "paragraph", 1, (1,)),
        ("They hum.", "paragraph", 1, (2, 3)),
        ("They rest.", "item", 2, ()),
    ]
    assert [entry.url for entry in report.references] == ["https://a.example", "https://b.example"]


def test_sentences_that_state_facts_without_a_citation_are_found():
    text = """# Bees in 1965

They were seen by Karl Frisch. It took 3 years. They dance. Did he see 20? "He did so," he said.

- The year was 1965 [1].
- It was in Munich.
"""
    found = [(one.text, one.line) for one in read_report(text + LIST).uncited]
    assert found == [("They were seen by Karl Frisch.", 3), ("It took 3 years.", 3), ("It was in Munich.", 6)]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000,
        "> " * 10_000 + "[1]",
        "".join(" " * (2 * depth) + "- a [1]\n" for depth in range(300)),
        "[^" * 5_000,
        "\ud800[1]\x00\x1b\u2028[2]",
        "".join("`" * (200 - number) + "\n" for number in range(190)) + "```\n" * 3_000,
    ],
)
def test_hostile_reports_are_read(text):
    lines = clean_text(text)[0].count("\n") + 1
    assert all(1 <= one.line <= lines for one in read_report(text).citations)


BITS = """[1]|[^a]|[2, 3]|[a](https://a.example)|. | |# |- |> |1. |References|[1]: |https://x.example|Bees|12|<sup>|</sup>|`|(|)|[|]|
|\t|\u200b|<br>|*|[^a]: |et al.|\r\n|【1】|![x](y)|\n\n|.""".split("|")
BITS += ["\n", "|", "| a | b |\n|--|--|\n"]


@given(st.lists(st.sampled_from(BITS) | st.text(max_size=5), max_size=40).map("".join))
def test_any_text_is_read(text):
    report = read_report(text)
    lines = clean_text(text)[0].count("\n") + 1
    for one in (*report.citations, *report.uncited, *report.unused):
        assert 1 <= one.line <= lines
    for one in report.citations:
        assert one.sentence == " ".join(one.sentence.split())
        assert not one.url or one.url.lower().startswith(("http://", "https://"))
    assert set(report.missing) <= set(report.citations)


WORDS = st.lists(
    st.sampled_from("Bees dance often in Ulm while ants eat 3.5 mg of p53 since 1965".split()), min_size=2, max_size=7
)
MARK_STYLES = st.sampled_from([" [1]", "[2]", " [1][3]", " [1, 2]", " [1\u20133]"])


@given(st.lists(st.tuples(WORDS, MARK_STYLES, st.booleans()), min_size=1, max_size=6), st.sampled_from([" ", "\n"]))
def test_marks_change_no_sentence_around_them(parts, gap):
    plain = [" ".join(["The", *words]) + "." for words, _, _ in parts]
    marked = [(one + mark) if behind else (one[:-1] + mark + ".") for one, (_, mark, behind) in zip(plain, parts, strict=True)]
    found = read_report(gap.join(marked) + LIST)
    assert list(dict.fromkeys(one.sentence for one in found.citations)) == list(dict.fromkeys(plain))
    assert found.uncited == []
