"""The drawing of a searcher says what the searcher does, and nothing in it is markup of somebody else's."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever, ClauseSplit, FaissRetriever, OverlapReranker, Searcher

SVG = "{http://www.w3.org/2000/svg}"
BM25, OVERLAP = Bm25Retriever(k1=1.2), OverlapReranker()


def placed(element: ElementTree.Element, x: float = 0.0) -> Iterator[tuple[float, ElementTree.Element]]:
    """The elements of a picture, each with its place from the left."""
    if moved := element.get("transform"):
        x += float(moved.removeprefix("translate(").split()[0])
    yield x + float(element.get("x", "0")), element
    for part in element:
        yield from placed(part, x)


def texts(svg: str) -> list[str]:
    """The visible texts, from left to right."""
    found = [(x, str(part.text)) for x, part in placed(ElementTree.fromstring(svg)) if part.tag == f"{SVG}text"]
    return [text for _, text in sorted(found)]


def test_stages_stand_in_their_order_with_the_depth_of_each() -> None:
    shown = texts((BM25 % 50 + FaissRetriever(HashedWords()) % 20 >> OVERLAP % 10).draw())
    assert [text for text in shown if text in ("query", "bm25", "faiss", "rrf", "overlap", "hits")] == [
        *("query", "bm25", "faiss", "rrf", "overlap", "hits")
    ]
    assert {"50", "20", "first 10", "k1=1.2"} <= set(shown)
    assert "b=0.4" not in shown  # which is the default
    assert (BM25 & FaissRetriever(HashedWords())).draw() != (BM25 | FaissRetriever(HashedWords())).draw()
    assert "50, first 10" in texts((BM25 % 50 >> OVERLAP % 10).draw())
    assert "k, at most 10" in texts((BM25 % 10).draw())


def test_a_searcher_inside_another_is_a_box_around_its_own_stages() -> None:
    searcher = 0.7 * (BM25 >> OVERLAP) + 0.3 * Bm25Retriever()
    picture = ElementTree.fromstring(searcher.draw())
    ((left, frame),) = [(x, box) for x, box in placed(picture) if box.get("stroke-dasharray")]
    right = left + float(frame.get("width", ""))
    inside = [text.text for x, text in placed(picture) if text.tag == f"{SVG}text" and left < x < right]
    assert {"searcher", "overlap"} <= set(inside)
    assert {"0.7 · 100", "0.3 · 100", "weighted_sum"} <= set(texts(searcher.draw()))


def test_subqueries_are_shown_and_interleaved() -> None:
    split = Searcher([BM25], processor=ClauseSplit(), scope="per_subquery", quota=3)
    assert {"clauses", "sub-queries", "interleave, quota=3"} <= set(texts(split.draw()))


def test_a_label_is_text_and_a_notebook_shows_the_expression_below() -> None:
    hostile = Searcher({"<script>alert(1)</script>": BM25})
    assert "<script" not in hostile._repr_html_()
    assert texts(hostile.draw())[1] == "<script>alert(1)</script> (bm25)"
    assert "Bm25Retriever(k1=1.2)" in hostile._repr_html_()
