"""The drawing of a searcher says what the searcher does, and nothing in it is markup of somebody else's."""

from __future__ import annotations

from xml.etree import ElementTree

from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever, ClauseSplit, FaissRetriever, OverlapReranker, Searcher

SVG = "{http://www.w3.org/2000/svg}"
BM25, OVERLAP = Bm25Retriever(k1=1.2), OverlapReranker()


def texts(svg: str) -> list[str]:
    """The visible texts, from left to right."""
    found = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return [str(text.text) for text in sorted(found, key=lambda text: float(text.get("x", "0")))]


def test_stages_stand_in_their_order_with_the_depth_of_each() -> None:
    shown = texts((BM25 % 50 + FaissRetriever(HashedWords()) % 20 >> OVERLAP % 10).draw())
    assert [text for text in shown if text in ("query", "bm25", "faiss", "rrf", "overlap", "hits")] == [
        *("query", "bm25", "faiss", "rrf", "overlap", "hits")
    ]
    assert {"50", "20", "first 10", "k1=1.2"} <= set(shown)
    assert "b=0.4" not in shown  # which is the default
    assert "50, first 10" in texts((BM25 % 50 >> OVERLAP % 10).draw())
    assert "k, at most 10" in texts((BM25 % 10).draw())


def test_a_searcher_inside_another_is_a_box_around_its_own_stages() -> None:
    searcher = 0.7 * (BM25 >> OVERLAP) + 0.3 * Bm25Retriever()
    picture = ElementTree.fromstring(searcher.draw())
    (frame,) = [box for box in picture.iter(f"{SVG}rect") if box.get("stroke-dasharray")]
    left, width = float(frame.get("x", "")), float(frame.get("width", ""))
    inside = [text.text for text in picture.iter(f"{SVG}text") if left < float(text.get("x", "")) < left + width]
    assert {"searcher", "overlap"} <= set(inside)
    assert {"0.7 · 100", "0.3 · 100", "weighted_sum"} <= set(texts(searcher.draw()))


def test_subqueries_are_shown_and_interleaved() -> None:
    split = Searcher([BM25], processor=ClauseSplit(), scope="per_subquery", quota=3)
    assert {"clauses", "sub-queries", "interleave", "quota=3"} <= set(texts(split.draw()))


def test_a_label_is_text_and_a_notebook_shows_the_expression_below() -> None:
    hostile = Searcher({"<script>alert(1)</script>": BM25})
    assert "<script" not in hostile._repr_html_()
    assert texts(hostile.draw())[1] == "<script>alert(1)</script>"
    assert "Bm25Retriever(k1=1.2)" in hostile._repr_html_()
