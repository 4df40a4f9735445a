"""HTML and Markdown to text: order, paragraphs, lists, tables, the main text of a page, and pages made to be expensive."""

from __future__ import annotations

import pytest

from nlp_retrieval.documents import read_document
from nlp_retrieval.documents.reading import READ_HERE
from nlp_retrieval.errors import SourceError

ARTICLE = """<!doctype html><html lang="en"><head><title> Rain in the
 valley </title><link rel="canonical" href="https://other.example/"></head><body>
<nav><a href="/">Home</a> <a href="/news">News</a></nav>
<article><h1>Rain in the valley</h1>
<p>Mean rainfall rose by <b>12 percent</b> between 1990 and 2020,<br>a report <a href="/r">says</a>.</p>
<p>About 3 &times; 10<sup>5</sup> people live there; CO<sub>2</sub> rose as well.<sup>[3]</sup></p>
<ul><li>The <i>north</i> is wetter.</li><li>The south is drier.</li></ul>
<table><tr><th>Year</th><th>Rain</th></tr><tr><td>1990</td><td>800 mm</td></tr><tr><td>2020</td><td>896 mm</td></tr></table>
<blockquote>We did not expect this.</blockquote>
<p>The second half of the report is about the rivers, which carry more water in spring than they used to.</p>
<p>It was written by people who have measured the rain there every morning since the year 1951.</p>
</article><footer>All rights reserved</footer></body></html>"""

TEXT = """Rain in the valley

Mean rainfall rose by 12 percent between 1990 and 2020,
a report says.

About 3 × 10⁵ people live there; CO2 rose as well.

- The north is wetter.
- The south is drier.

Year | Rain
1990 | 800 mm
2020 | 896 mm

We did not expect this.

The second half of the report is about the rivers, which carry more water in spring than they used to.

It was written by people who have measured the rain there every morning since the year 1951."""  # noqa: RUF001


def text_of(html: str) -> str:
    return read_document(html.encode(), "a.html").text


def test_the_main_text_is_read_in_order_with_its_lists_and_tables() -> None:
    read = read_document(ARTICLE.encode(), "rain.html")
    assert (read.title, read.text) == ("Rain in the valley", TEXT)
    assert "Home News" not in read.text


SENTENCE = "The council met on Tuesday to discuss the budget of the harbour and the cost of dredging it. "
PARAGRAPHS = "".join(f"<p>{SENTENCE}{SENTENCE}Item {n} was approved.</p>" for n in range(4))
FACT = "The basin is 14 metres deep."
READ = {
    "box": f"<section><div><div>{FACT}</div></div></section>",
    "bare text": FACT,
    "without scripts": f"<noscript><p>{FACT}</p></noscript>",
    "frame": f"<table><tr><td><table><tr><td>{FACT}</td></tr></table></td></tr></table>",
    "details": f"<details><summary>More</summary>{FACT}</details>",
    "definitions": f"<dl><dt>Depth</dt><dd>{FACT}</dd></dl>",
    "caption of a figure": f"<figure><img src=x><figcaption>{FACT}</figcaption></figure>",
    "standfirst": f"<header><h1>Deepened</h1><p>{FACT}</p></header>",
}
LINKS = "".join(f'<li><a href="/{n}">Story number {n} of the week about the ferry.</a></li>' for n in range(4))
LEFT_OUT = {
    "links": f"<aside><h3>More</h3><ul>{LINKS}</ul></aside>",
    "form": "<aside><p>Sign up and get our ferry stories by mail every week.</p><form><input type=email></form></aside>",
    "rights": "<footer>All rights reserved, ferry</footer>",
}


def page_with(part: str, place: str = "last") -> str:
    body = f"{part}{PARAGRAPHS}" if place == "first" else f"{PARAGRAPHS}{part}"
    outside = "<aside><p>Read what our readers said about the ferry last week.</p></aside>"
    return f"<title>T</title><body><nav><a href=/>Home</a></nav><main><article>{body}</article></main>{outside}</body>"


def test_parts_of_an_article_are_read_and_what_surrounds_it_is_not(subtests: pytest.Subtests) -> None:
    for name, part in (READ | LEFT_OUT).items():
        for place in ("first", "last"):
            with subtests.test(name=name, place=place):
                text = text_of(page_with(part, place))
                assert (FACT in text) == (name in READ)
                assert "ferry" not in text
                assert "Item 3 was approved." in text


LINES = {
    "<p>It has 22<sup>[2]</sup> stops.</p>": "It has 22 stops.",
    '<p>It has 22<sup class="reference"><a href="#cite_note-2">[2]</a></sup> stops.</p>': "It has 22 stops.",
    "<p>It covers 40 m<sup>2</sup> of land.</p>": "It covers 40 m² of land.",
    "<p>Ca<sup>2+</sup> ions</p>": "Ca²⁺ ions",
    "<p><code>a[2]</code> is read</p>": "a[2] is read",
    "<p><del>2</del><ins>3</ins> euros</p>": "3 euros",
    '<p><span style="text-decoration-line:line-through;text-decoration-style:solid">2</span>3 euros</p>': "3 euros",
    "<pre>Year  Boats\n2019  2.2\n2020  2.4</pre>": "Year  Boats\n2019  2.2\n2020  2.4",
    "<table><tr><th>Port<th>Year<tr><td rowspan=2>North<td>1<tr><td>2<tr><td>South<td>3</table>": (
        "Port | Year\nNorth | 1\nNorth | 2\nSouth | 3"
    ),
    "<table><tr><th rowspan=2>Port<th colspan=2>2019<tr><th>in<th>out<tr><td>North<td>1<td>2</table>": (
        "Port | 2019 in | 2019 out\nNorth | 1 | 2"
    ),
    "<table><tr><td colspan=2>Catch<tr><td>Krill<td>5 tonnes</table>": "Catch | Catch\nKrill | 5 tonnes",
    "<table><tbody><tr><th>n<th>m<tr><td rowspan=5>A<td>1<tbody><tr><td>B<td>2</table>": "n | m\nA | 1\nB | 2",
    "<p>It is <math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> of <math><msup><mn>10</mn><mn>6</mn></msup></math>.": (
        "It is 1/2 of 10^6."
    ),
    "<p><span>22</span><span>Stops</span> in python<b>X.Y</b>": "22 Stops in pythonX.Y",
    "<table><tr><td rowspan=50>A<td rowspan=-2>b<tr><td rowspan=x>c</table>": "A | b\nA | c",
}  # fmt: skip


def test_words_and_figures_are_read_as_a_browser_shows_them(subtests: pytest.Subtests) -> None:
    for html, text in LINES.items():
        with subtests.test(html=html):
            assert text_of(html) == text


def test_markdown_is_read_as_its_reader_sees_it() -> None:
    text = """# Rain in the *valley*

Mean rainfall rose by **12 percent**, a [report](https://example.org/r) says.
The ~~old~~ line[^1] goes on.

- The north is wetter.
- The south is drier.

| Year | Rain   |
|------|--------|
| 1990 | 800 mm |

[^1]: By the operator.
"""
    read = read_document(text.encode(), "rain.md")
    assert read.title == "Rain in the valley"
    assert read.text == (
        "Rain in the valley\n\nMean rainfall rose by 12 percent, a report says. The line goes on.\n\n"
        "- The north is wetter.\n- The south is drier.\n\nYear | Rain\n1990 | 800 mm\n\nBy the operator."
    )


@pytest.mark.parametrize("data", [b" \n\t", "\ufeff\u200b ".encode(), b"<html></html>", b"<p hidden>x</p>"])
def test_a_source_without_text_is_an_error(data: bytes) -> None:
    with pytest.raises(SourceError, match=r"a\.html: (it is empty|it has no visible text|it is not HTML)"):
        read_document(data, "a.html")


def test_a_kind_that_is_not_read_is_an_error_that_says_which_are() -> None:
    with pytest.raises(SourceError, match=r"a\.xlsx: name ending '\.xlsx' is not read; convert it to one of \.txt"):
        read_document(b"PK", "a.xlsx")
    with pytest.raises(SourceError, match=r"media type 'image/png' is not read"):
        read_document(b"\x89PNG", "a.html", "image/png")
    assert read_document(b"<p>x</p>", "https://example.org/a.html?x=.png#.jpg").text == "x"
    assert read_document(b"<p>x</p>", "https://example.org/", "TEXT/HTML").text == "x"
    assert read_document(b"*x*", "https://example.org/", "text/markdown; charset=utf-8").text == "x"


def test_ten_thousand_nested_tags_are_a_clear_error_and_not_a_page_cut_short() -> None:
    with pytest.raises(SourceError, match=r"^a\.html: more than 250 levels of nested elements; save it as plain text"):
        text_of(f"<html><body><p>Before.</p>{'<div>' * 10_000}deep<p>After.</p></body></html>")


@pytest.mark.parametrize("mark", ["> ", "- "])
def test_deep_markdown_is_read_as_far_as_people_write_it_and_never_ends_in_a_recursion(mark: str) -> None:
    assert read_document((mark * 40 + "deep").encode(), "deep.md").text.endswith("deep")
    read = read_document(f"Before.\n\n{mark * 5000}deep\n\nAfter.".encode(), "deep.md")
    assert (read.text[:7], "deep" in read.text) == ("Before.", False)
    assert read.notes == ["deep.md: what is nested in more than 50 lists or quotes was left out; flatten it"]


def test_a_large_page_is_read_in_a_child_process_with_the_same_result() -> None:
    comment = b"<!--" + b"x" * READ_HERE["html"] + b"-->"
    read = read_document(ARTICLE.encode().replace(b"<nav>", comment + b"<nav>"), "rain.html")
    assert (read.title, read.text, read.removed["unrendered"]) == ("Rain in the valley", TEXT, 1)


def test_a_page_made_to_take_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nlp_retrieval.documents.reading.CHILD_SECONDS", 1)
    page = b"<p " + b" ".join(b"a%d=1" % number for number in range(400_000)) + b">x"
    with pytest.raises(SourceError, match=r"slow\.html: reading it takes longer than 1 seconds; omit it"):
        read_document(page, "slow.html")


def test_cells_that_claim_to_span_many_rows_and_columns_cost_little() -> None:
    page = "<table>" + ("<tr>" + "<td colspan=50 rowspan=50>x" * 150) * 70 + "</table>"
    assert len(page) > READ_HERE["html"]
    assert read_document(page.encode(), "spans.html").text.count("x") >= 70 * 150
