"""HTML and Markdown to text: order, paragraphs, lists, tables, and pages made to be expensive."""

from __future__ import annotations

import pytest

from nlp_retrieval.documents import read_document
from nlp_retrieval.documents.reading import LARGEST_FILE, LARGEST_MARKUP, READ_HERE
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


def test_the_main_text_is_read_in_order_with_its_lists_and_tables() -> None:
    read = read_document(ARTICLE.encode(), "rain.html")
    assert read.title == "Rain in the valley"
    assert read.text == TEXT


def test_a_page_too_short_to_tell_its_main_text_is_read_whole() -> None:
    page = "<p>One.</p><p>Two, <em>in a</em>\n line.</p><div>Three<div>four</div>five</div><dl><dt>Six</dt><dd>7</dd></dl>eight"
    assert (
        read_document(page.encode(), "short.html").text
        == "One.\n\nTwo, in a line.\n\nThree\n\nfour\n\nfive\n\nSix\n\n7\n\neight"
    )


def test_without_a_title_the_first_heading_is_the_title() -> None:
    assert read_document(b"<p>A</p><h1>The <i>heading</i></h1>", "a.html").title == "The heading"
    assert read_document(b"<p>A</p>", "a.html").title == ""


def test_markdown_is_read_as_its_reader_sees_it() -> None:
    text = """# Rain in the *valley*

Mean rainfall rose by **12 percent**, a [report](https://example.org/r) says.
The line goes on.

- The north is wetter.
- The south is drier.

| Year | Rain   |
|------|--------|
| 1990 | 800 mm |
"""
    read = read_document(text.encode(), "rain.md")
    assert read.title == "Rain in the valley"
    assert read.text == (
        "Rain in the valley\n\nMean rainfall rose by 12 percent, a report says. The line goes on.\n\n"
        "- The north is wetter.\n- The south is drier.\n\nYear | Rain\n1990 | 800 mm"
    )


def test_plain_text_stays_as_it_is() -> None:
    text = "# no heading\n\n  <b>no tag</b>  &amp; **no mark**\nsecond line\t1"
    assert read_document(f"\n{text}\r\n".encode(), "a.TXT").text == text
    assert read_document(text.encode(), "a.TXT").title == ""


@pytest.mark.parametrize("data", [b"", b" \n\t", "\ufeff\u200b ".encode(), b"<html></html>", b"<p hidden>x</p>", b"<!-- x -->"])
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


@pytest.mark.parametrize("tag", ["div", "b"])
def test_ten_thousand_nested_tags_are_a_clear_error_and_not_a_page_cut_short(tag: str) -> None:
    page = f"<html><body><p>Before.</p>{f'<{tag}>' * 10_000}deep<p>After.</p></body></html>"
    try:
        text = read_document(page.encode(), "deep.html").text
    except SourceError as error:
        message = "deep.html: more than 250 levels of nested elements; save it as plain text"
        assert str(error) == message  # noqa: PT017 -- the parser may close the tags by itself
    else:
        assert "Before." in text
        assert "After." in text


@pytest.mark.parametrize("mark", ["> ", "- "])
def test_deep_markdown_is_read_as_far_as_people_write_it_and_never_ends_in_a_recursion(mark: str) -> None:
    assert read_document((mark * 40 + "deep").encode(), "deep.md").text.endswith("deep")
    for levels in (100, 5000):
        read = read_document(f"Before.\n\n{mark * levels}deep\n\nAfter.".encode(), "deep.md")
        assert (read.text[:7], "deep" in read.text) == ("Before.", False)
        assert read.notes == ["deep.md: what is nested in more than 50 lists or quotes was left out; flatten it"]


@pytest.mark.parametrize("mark", "[*_<!")
def test_marks_without_an_end_are_text(mark: str) -> None:
    assert read_document(f"{mark * 5000} deep".encode(), "marks.md").text.endswith("deep")


def test_a_page_of_fifty_mebibytes_is_refused_before_it_is_parsed() -> None:
    assert LARGEST_MARKUP < 50 * 2**20 <= LARGEST_FILE
    page = b"<p>" + b"x" * (50 * 2**20 - 3)
    with pytest.raises(SourceError, match=r"big\.html: 50 MiB; at most 10 MiB of html are read, split it up"):
        read_document(page, "big.html")
    with pytest.raises(SourceError, match=r"big\.txt: 50 MiB; at most 50 MiB of text are read"):
        read_document(page + b"x", "big.txt")


def test_a_large_page_is_read_in_a_child_process_with_the_same_result() -> None:
    comment = b"<!--" + b"x" * READ_HERE["html"] + b"-->"
    page = ARTICLE.encode().replace(b"<nav>", comment + b"<nav>")
    read = read_document(page, "rain.html")
    assert (read.title, read.text, read.removed.unrendered) == ("Rain in the valley", TEXT, 1)


def test_a_page_made_to_take_for_ever_is_given_up() -> None:
    page = b"<p " + b" ".join(b"a%d=1" % number for number in range(400_000)) + b">x"
    with pytest.raises(SourceError, match=r"slow\.html: reading it takes longer than 1 seconds; omit it"):
        read_document(page, "slow.html", seconds=1)


def test_attributes_by_the_thousand_and_unclosed_tags_are_read() -> None:
    for page in (
        "<p " + "a=b " * 3000 + ">x",
        "<p" * 3000 + ">x",
        "<a href='" + "x" * 9000 + "'>x",
        "x" + "<" * 9000,
        "x<!--" * 5,
    ):
        assert "x" in read_document(page.encode(), "a.html").text
