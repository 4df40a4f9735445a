"""Parts of an article that are set apart from its paragraphs: they are read, and what surrounds the article is not."""

from __future__ import annotations

import pytest

from nlp_retrieval.documents.html import read_html

SENTENCE = "The council met on Tuesday to discuss the budget of the harbour and the cost of dredging it. "
PARAGRAPHS = "".join(f"<p>{SENTENCE}{SENTENCE}Item {n} was approved.</p>" for n in range(4))
LINKS = "".join(f'<li><a href="/{n}">Story number {n} of the week about the ferry.</a></li>' for n in range(4))

READ = {
    "details": "<details><summary>Reserve</summary><p>The fund holds 4.2 million.</p></details>",
    "definitions": "<dl><dt>Depth</dt><dd>The basin is 14 metres deep.</dd></dl>",
    "caption of a figure": "<figure><img src=x><figcaption>The crane lifted 900 tonnes in May.</figcaption></figure>",
    "quotation set apart": "<aside><p>Nobody expected so much silt, said the harbour master.</p></aside>",
    "correction": "<footer><p>Correction: an earlier version gave the depth as 12 metres.</p></footer>",
    "standfirst": "<header><h1>Deepened</h1><p>The works took 18 months.</p></header>",
}
LEFT_OUT = {
    "links": f"<aside><h3>More</h3><ul>{LINKS}</ul></aside>",
    "form": "<aside><p>Sign up and get our ferry stories by mail every week.</p><form><input type=email></form></aside>",
    "rights": "<footer>All rights reserved, ferry</footer>",
}


def page_with(part, place):
    body = f"{part}{PARAGRAPHS}" if place == "first" else f"{PARAGRAPHS}{part}"
    outside = "<aside><p>Read what our readers said about the ferry last week.</p></aside>"
    return f"<title>T</title><body><nav><a href=/>Home</a></nav><main><article>{body}</article></main>{outside}</body>"


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("name", READ)
def test_a_part_of_an_article_is_read(name, place):
    from lxml import html

    text = read_html(page_with(READ[name], place), "page").text
    for words in html.fromstring(f"<div>{READ[name]}</div>").itertext():
        assert words.strip() in text
    assert "ferry" not in text


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_not_the_article_is_left_out(name, place):
    assert "ferry" not in read_html(page_with(LEFT_OUT[name], place), "page").text


STYLED = "<style>.figure, .label { display: block } .card { display: flex }</style>"
LINES = {
    "figure and label of a card": ("<div><span>22</span><span>berths</span></div>", "22 berths"),
    "halves of a number": ("<p>It holds <span>1</span><span>,234</span> boats.</p>", "It holds 1,234 boats."),
    "lines of a table in plain text": ("<pre>Year  Boats\n2019  2.2\n2020  2.4</pre>", "Year Boats\n2019 2.2\n2020 2.4"),
    "power": ("<p><math><msup><mn>10</mn><mn>6</mn></msup></math> boats</p>", "10⁶ boats"),
    "fraction of a sum": (
        "<p><math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><msup><mi>c</mi><mi>k</mi></msup></mfrac></math></p>",
        "(a+b)/(c^k)",
    ),
}
TABLES = {
    "label of several rows": (
        "<tr><th>Port</th><th>Year</th></tr><tr><td rowspan=2>North</td><td>1</td></tr><tr><td>2</td></tr>"
        "<tr><td>South</td><td>3</td></tr>",
        "Port | Year\nNorth | 1\nNorth | 2\nSouth | 3",
    ),
    "header in two rows": (
        "<tr><th rowspan=2>Port</th><th colspan=2>2019</th><th>2020</th></tr><tr><th>in</th><th>out</th><th>in</th></tr>"
        "<tr><td>North</td><td>1</td><td>2</td><td>3</td></tr>",
        "Port | 2019 in | 2019 out | 2020 in\nNorth | 1 | 2 | 3",
    ),
    "line over all columns": ("<tr><td colspan=2>Total</td></tr><tr><td>1</td><td>2</td></tr>", "Total\n\n1\n\n2"),
    "made-up numbers of rows": (
        "<tr><td rowspan=50>A</td><td rowspan=-2>b</td></tr><tr><td rowspan=x>c</td></tr>",
        "A | b\nA | c",
    ),
}


@pytest.mark.parametrize(("html", "line"), LINES.values(), ids=LINES)
def test_words_and_figures_beside_each_other_stay_apart(html, line):
    assert f"\n{line}\n" in read_html(page_with(html, "last").replace("</article>", "<p>End.</p></article>"), "page").text


@pytest.mark.parametrize(("rows", "read"), TABLES.values(), ids=TABLES)
def test_a_row_of_a_table_is_read_with_the_cells_that_span_it(rows, read):
    assert f"\n\n{read}" in read_html(page_with(f"<table>{rows}</table>", "last"), "page").text
