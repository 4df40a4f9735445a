"""ChunkingLoader: every passage knows where it came from."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from nlp_retrieval.core.files.frames import BaseLoader
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import ItemError
from nlp_retrieval.loaders.chunking import ChunkingLoader


class OneItem(BaseLoader):
    """One item.

    Args:
        content: its text.
        metadata: its metadata.
    """

    name = "one"

    def __init__(self, content: str, metadata: dict[str, JsonValue] | None = None) -> None:
        self.content = content
        self.metadata = metadata

    def stream(self) -> Iterator[SearchableItem]:
        yield SearchableItem(item_id="p", content=self.content, metadata=self.metadata or {})


def chunks(text: str, size: int = 200, overlap: int = 50) -> list[SearchableItem]:
    return ChunkingLoader(OneItem(text), size, overlap).load()


def texts(*arguments: Any) -> list[str]:
    return [chunk.content for chunk in chunks(*arguments)]


def span(chunk: SearchableItem) -> tuple[int, int]:
    start, end = chunk.metadata["start"], chunk.metadata["end"]
    assert isinstance(start, int)
    assert isinstance(end, int)
    return start, end


TEXTS = st.text(st.sampled_from("ab.?! \n\t\"')漢字。ü\u0301🙂\u2028") | st.characters(codec="utf-8"), max_size=400)


@given(TEXTS, st.integers(1, 30), st.integers(0, 29))
def test_spans_reconstruct_the_parent_and_cover_all_but_white_space(text: str, size: int, overlap: int) -> None:
    overlap %= size
    found = chunks(text, size, overlap)
    assert [chunk.item_id for chunk in found] == [f"p#{n}" for n in range(len(found))]
    assert found
    covered = 0
    last_start = -1
    for chunk in found:
        start, end = span(chunk)
        assert text[start:end] == chunk.content == chunk.content.strip()
        assert start > last_start
        assert end > covered or not text.strip()
        assert not text[covered:start].strip()
        covered, last_start = end, start
    assert not text[covered:].strip()


def test_a_passage_keeps_title_and_metadata_and_says_where_it_comes_from() -> None:
    loader = ChunkingLoader(OneItem("One two. Three four.", {"title": "T", "year": 1}), size=2, overlap=0)
    assert loader.load() == [
        SearchableItem(
            item_id="p#0",
            content="One two.",
            metadata={"title": "T", "year": 1, "parent_id": "p", "chunk": 0, "start": 0, "end": 8},
        ),
        SearchableItem(
            item_id="p#1",
            content="Three four.",
            metadata={"title": "T", "year": 1, "parent_id": "p", "chunk": 1, "start": 9, "end": 20},
        ),
    ]


def test_passages_end_and_start_with_sentences_where_they_can() -> None:
    text = "One two three four. Five six seven (eight)! Nine ten eleven. Twelve thirteen fourteen fifteen."
    assert texts(text, 10, 4) == [
        "One two three four. Five six seven (eight)!",
        "Five six seven (eight)! Nine ten eleven.",
        "Nine ten eleven. Twelve thirteen fourteen fifteen.",
    ]


def test_chinese_is_cut_by_characters_and_at_full_stops() -> None:
    assert texts("我爱北京天安门。天安门上太阳升。伟大领袖毛主席。", 9, 0) == [
        "我爱北京天安门。",
        "天安门上太阳升。",
        "伟大领袖毛主席。",
    ]


def test_a_text_without_spaces_is_cut_as_one_with_words_is(subtests: pytest.Subtests) -> None:
    for word, most in [
        ("การท่องเที่ยวแห่งประเทศไทยเป็นหน่วยงานของรัฐ", 1800),
        ("ປະເທດລາວເປັນປະເທດທີ່ບໍ່ມີທາງອອກສູ່ທະເລ", 1800),
        ("ប្រទេសកម្ពុជាគឺជាប្រទេសមួយស្ថិតនៅក្នុងតំបន់", 1800),
        ("မြန်မာနိုင်ငံသည်အရှေ့တောင်အာရှတွင်တည်ရှိသည်", 1800),
        ("བོད་ནི་ཨེ་ཤ་ཡའི་ས་ཁུལ་ཞིག་ཡིན།", 1800),
        ("ꦲꦏ꧀ꦱꦫꦗꦮ", 1800),
        ("中国是一个历史悠久的国家", 200),
        ("ひらがなとｶﾀｶﾅ", 200),
        ("ꀉꀊꀋ", 200),
        ("aGVsbG8gd29ybGQ", 2000),
        ("https://example.org/a/b?c=d&e=", 2000),
    ]:
        with subtests.test(word=word, most=most):
            text = (word * 8400)[:8400]
            found = chunks(text)
            assert max(len(chunk.content) for chunk in found) <= most
            assert len(found) <= 60
            parts = texts(text, 30, 0)
            assert "".join(parts) == text
            for before, part in pairwise(parts):
                assert unicodedata.category(part[0]) not in ("Mn", "Mc"), "a mark stays with its letter"
                assert part[0] not in "ะาำະາຳ"
                assert before[-1] not in "เแโใไເແໂໃໄ\u1039\u17d2", "a vowel before its letter, one letter below another"


def test_metadata_that_would_be_overwritten_is_an_error() -> None:
    loader = ChunkingLoader(OneItem("text", {"start": 12.5}))
    with pytest.raises(ItemError, match='item "p": its metadata has "start", which ChunkingLoader writes; rename it'):
        loader.load()


def test_a_passage_has_the_page_that_it_begins_on():
    starts = [[1, 0], [2, 8], [4, 16]]
    item = OneItem("one two\nred sea\nbig oak", {"page_starts": starts, "year": 1})
    passages = list(ChunkingLoader(item, size=1, overlap=0).stream())
    assert [passage.metadata["page"] for passage in passages] == [1, 1, 2, 2, 4, 4]
    assert all("page_starts" not in passage.metadata for passage in passages)
    other = OneItem("one", {"page_starts": 3, "page": "iv"})
    assert next(ChunkingLoader(other, size=1, overlap=0).stream()).metadata["page"] == "iv"
