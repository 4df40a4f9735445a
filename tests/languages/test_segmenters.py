"""Chinese by a dictionary: the words of the segmenter find a text, pairs that are no words do not, and an index knows it."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import rjieba
from hashed_words import items_of, rows_of

from languages.passages import SAMPLES
from nlp_retrieval import Bm25Retriever, RetrievalWarning
from nlp_retrieval.errors import ConfigurationError, DependencyError, IndexMismatchError
from nlp_retrieval.text import words as segmenters
from nlp_retrieval.text.words import Words

JIEBA = Bm25Retriever(language="zh", segmenter="jieba")
TEXTS = ["我们的产品和服务", "她穿着和服喝茶", "中华人民共和国的首都", "C言語 東京タワー 서울에서", "龘靐齉爩"]


def found(retriever: Bm25Retriever, folder: Path, query: str) -> set[int]:
    retriever.index(items_of(TEXTS), folder)
    return set(rows_of(retriever.retrieve([[query]], folder, len(TEXTS))[0]))


def test_queries_have_the_words_of_the_library_and_passages_their_characters_too() -> None:
    words, text = Words("zh", segmenter="jieba"), "中华人民共和国的首都"
    assert words.split(text) == rjieba.cut_for_search(text, False)
    passage = words.split(text, passage=True)
    assert sorted(passage) == sorted([*(word for word in words.split(text) if len(word) > 1), *text])


@pytest.mark.parametrize("text", ["서울에서 살다", "vitamin C, C++"])
def test_what_is_no_chinese_is_split_as_ever(text: str) -> None:
    for passage in (False, True):
        assert Words("zh", segmenter="jieba").split(text, passage=passage) == Words("zh").split(text, passage=passage)


def test_in_mixed_text_only_the_chinese_characters_are_segmented() -> None:
    words = Words("any", segmenter="jieba")
    assert words.split("C言語 東京タワーへ") == [
        "c",
        *rjieba.cut("言語", False),
        *rjieba.cut("東京", False),
        "タワ",
        "ワー",
        "ーへ",
    ]


def test_a_word_is_found_and_a_pair_across_words_is_not(tmp_path: Path) -> None:
    pairs = Bm25Retriever(language="zh")
    assert found(JIEBA, tmp_path / "jieba", "和服") == {1}
    assert found(pairs, tmp_path / "pairs", "和服") == {0, 1}
    assert found(JIEBA, tmp_path / "jieba", "服务") == {0}
    assert found(JIEBA, tmp_path / "jieba", "共和国") == {2}
    assert found(JIEBA, tmp_path / "jieba", "靐") == {4}, "a character that no dictionary has"


def test_every_word_of_a_text_finds_it_but_one_that_the_dictionary_cuts_through(tmp_path: Path) -> None:
    JIEBA.index(items_of(SAMPLES["zh"].passages()), tmp_path)
    words = [(word, row) for row, of_text in enumerate(SAMPLES["zh"].words()) for word in of_text]
    with pytest.warns(RetrievalWarning, match="found nothing for 1 of"):
        lists = JIEBA.retrieve([[word] for word, _ in words], tmp_path, 9)
    assert [word for (word, row), hits in zip(words, lists, strict=True) if row not in rows_of(hits)] == ["流过"]


def test_package_and_version_belong_to_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    JIEBA.index(items_of(TEXTS), tmp_path)
    assert JIEBA.identity["segmenter"] == {"name": "jieba", "package": "rjieba", "version": version("rjieba")}
    with pytest.raises(IndexMismatchError, match=r"segmenter: indexed with .*rjieba.* now None"):
        Bm25Retriever(language="zh").retrieve([["和服"]], tmp_path, 1)
    monkeypatch.setattr(segmenters, "version", lambda package: "9.9")
    with pytest.raises(IndexMismatchError, match=r"segmenter.version: indexed with '.*', now '9.9'"):
        JIEBA.retrieve([["和服"]], tmp_path, 1)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setitem(sys.modules, "rjieba", None)
    monkeypatch.setattr(segmenters, "version", missing)
    for attempt in (lambda: Words(segmenter="jieba"), lambda: JIEBA.identity):
        with pytest.raises(DependencyError, match=r"needs rjieba: pip install 'nlp_retrieval\[chinese\]'"):
            attempt()


def test_a_pattern_and_a_segmenter_exclude_each_other() -> None:
    with pytest.raises(ConfigurationError, match="pattern and segmenter both say what a word is"):
        Bm25Retriever(pattern="[a-z]+", segmenter="jieba")
