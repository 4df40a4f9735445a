"""Parts of an article that are set apart from its paragraphs: they are read, and what surrounds the article is not."""

from __future__ import annotations

import pytest

from nlp_retrieval.systems.evidence.reading.page import read_html

SENTENCE = "The council met on Tuesday to discuss the budget of the harbour and the cost of dredging it. "
PARAGRAPHS = "".join(f"<p>{SENTENCE}{SENTENCE}Item {n} was approved.</p>" for n in range(4))
LINKS = "".join(f'<li><a href="/{n}">Story number {n} of the week about the ferry.</a></li>' for n in range(4))

READ = {
    "details": "<details><summary>Reserve</summary><p>The fund holds 4.2 million.</p></details>",
    "definitions": "<dl><dt>Depth</dt><dd>The basin is 14 metres deep.</dd></dl>",
    "caption of a figure": "<figure><img src=x><figcaption>The crane lifted 900 tonnes in May.</figcaption></figure>",
    "caption of a table": "<table><caption>Traffic</caption><tr><th>Year</th></tr><tr><td>2020</td></tr></table>",
    "quotation set apart": "<aside><p>Nobody expected so much silt, said the harbour master.</p></aside>",
    "correction": "<footer><p>Correction: an earlier version gave the depth as 12 metres.</p></footer>",
    "nested section": "<section><h2>Costs</h2><section><div><div><p>It cost 3.1 million.</p></div></div></section></section>",
    "standfirst": "<header><h1>Deepened</h1><p>The works took 18 months.</p></header>",
    "facts": "<div class='infobox'><ul><li>Opened: 1902</li><li>Berths: 14</li></ul></div>",
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
