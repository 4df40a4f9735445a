"""Nothing of a page's main text is lost: boxes between paragraphs, content for readers without scripts, marks and struck text."""  # noqa: E501

from __future__ import annotations

import pytest

from nlp_retrieval.documents import read_document

PARAGRAPHS = "".join(f"<p>Station {number} measured every morning, and its gauge was read by hand.</p>" for number in range(9))
NAVIGATION = '<nav><a href="/">Home</a> <a href="/n">News</a></nav>'
FACT = "The bridge at Orlau carried 4,210 carts a day before the flood of that spring."


@pytest.mark.parametrize(
    "box",
    [
        f"<div>{FACT}</div>",
        f"<section><div><div>{FACT}</div></div></section>",
        f"<noscript><p>{FACT}</p></noscript>",
        f"<table><tr><td><table><tr><td>{FACT}</td></tr></table></td></tr></table>",
        f"<details><summary>More</summary>{FACT}</details>",
        FACT,
    ],
)
@pytest.mark.parametrize("place", ["between", "before", "after"])
def test_a_box_in_an_article_is_read(box: str, place: str) -> None:
    inside = {"between": PARAGRAPHS + box + PARAGRAPHS, "before": box + PARAGRAPHS, "after": PARAGRAPHS + box}[place]
    page = f"<html><head><title>T</title></head><body>{NAVIGATION}<article><h1>T</h1>{inside}</article></body></html>"
    read = read_document(page.encode(), "a.html")
    assert FACT in read.text
    assert "News" not in read.text
    assert ("outside the main text", "Home News") in read.left_out


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("It has 22<sup>[2]</sup> stops.", "It has 22 stops."),
        ("It has 22 stops.<sup>2,3</sup>", "It has 22 stops."),
        ('It has 22<a href="#fn2">2</a> stops.', "It has 22 stops."),
        ('It has 22<sup class="reference" id="cite_ref-2"><a href="#cite_note-2">[2]</a></sup> stops.', "It has 22 stops."),
        ("It covers 40 m<sup>2</sup> of land.", "It covers 40 m² of land."),
        ("CO<sub>2</sub> rose.", "CO2 rose."),
        ("About 10<sup>6</sup> people.", "About 10⁶ people."),
        ("Ca<sup>2+</sup> ions", "Ca²⁺ ions"),
        ("<sup>14</sup>C dating", "¹⁴C dating"),
        ("<code>a[2]</code> is read", "a[2] is read"),
        ("<del>2</del><ins>3</ins> euros", "3 euros"),
        ('<span style="text-decoration:line-through">2</span>3 euros', "3 euros"),
    ],
)
def test_marks_and_struck_text_are_no_part_of_a_sentence(markup: str, text: str) -> None:
    read = read_document(f"<p>{markup}</p>".encode(), "a.html")
    assert read.text == text


def test_markdown_has_marks_and_struck_text_too() -> None:
    read = read_document(b"It has ~~2~~ 22[^1] stops.\n\n[^1]: By the operator.\n", "a.md")
    assert "It has 22 stops." in read.text
    assert "By the operator." in read.text
