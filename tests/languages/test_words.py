"""Every word of a text finds it, in every language, and the passages found are those that Lucene finds."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path

import pytest
from bm25s.tokenization import Tokenizer
from hashed_words import items_of, rows_of
from soaking import mostly_soaked

from languages.passages import SAMPLES
from nlp_retrieval import Bm25Retriever, PyseriniRetriever, RetrievalWarning
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.errors import ConfigurationError, IndexMismatchError
from nlp_retrieval.retrievers.pyserini.index import LANGUAGES as ANSERINI
from nlp_retrieval.text.words import LANGUAGES, Words, stop_words

LUCENE_FINDS_LESS = {
    # stop words of Lucene's where bm25s has no list, and in Persian a prefix that is one
    "fi": "joka hän kanssa",
    "tr": "bir",
    "ar": "كل مع في",
    "hi": "है से वह",
    "ja": "は を が",
    # single characters: Lucene's pairs hold none
    "zh": "点 灯 的 河 她 喝 茶",
    "ko": "는 을 강 이 를 에 차",
}
SHORT = ["en", "de", "tr", "ar", "zh", "ja"]
NO_THAI = "th"  # the Java that comes with pyserini's extra cannot split Thai


def index_of(retriever: Bm25Retriever | PyseriniRetriever, code: str, folder: Path) -> Path:
    retriever.index(items_of(SAMPLES[code].passages()), folder)
    return folder


def found(retriever: Bm25Retriever | PyseriniRetriever, folder: Path, queries: list[str]) -> list[set[int]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        return [set(rows_of(hits)) for hits in retriever.retrieve([[query] for query in queries], folder, 3)]


def words_of(code: str) -> list[tuple[str, int]]:
    """Each word with the row of a text that has it, but for stop words."""
    words = Words(code)
    return [
        (word, row)
        for row, of_text in enumerate(SAMPLES[code].words())
        for word in of_text
        if not has_no_words(word) and any(words.term(part) is not None for part in words.split(word))
    ]


@pytest.mark.parametrize("code", mostly_soaked(list(SAMPLES), SHORT))
def test_every_word_of_a_text_finds_it(tmp_path: Path, code: str) -> None:
    retriever = Bm25Retriever(language=code)
    folder = index_of(retriever, code, tmp_path)
    words = words_of(code)
    assert len(words) > 10
    for form in (str, str.upper, lambda word: unicodedata.normalize("NFD", word)):
        if code == "tr" and form is str.upper:
            continue  # Python does not know Turkish capitals; a test of their own stands below
        rows = found(retriever, folder, [form(word) for word, _ in words])
        assert [word for (word, row), hits in zip(words, rows, strict=True) if row not in hits] == []


@pytest.mark.parametrize("code", mostly_soaked([code for code in SAMPLES if code in ANSERINI and code != NO_THAI], SHORT))
def test_the_passages_found_are_those_of_lucene(tmp_path: Path, code: str) -> None:
    ours, theirs = Bm25Retriever(language=code), PyseriniRetriever(language=code)
    words = list(dict.fromkeys(word for of_text in SAMPLES[code].words() for word in of_text))
    queries = [*words, *SAMPLES[code].passages()]
    our_rows = found(ours, index_of(ours, code, tmp_path / "ours"), queries)
    their_rows = found(theirs, index_of(theirs, code, tmp_path / "theirs"), queries)
    differ = {query for query, mine, lucene in zip(words, our_rows, their_rows, strict=False) if mine != lucene}
    assert differ == set(LUCENE_FINDS_LESS.get(code, "").split())
    assert all(mine >= lucene for mine, lucene in zip(our_rows, their_rows, strict=True))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Vitamin C, C++ and C#", ["vitamin", "c", "c", "c", "c++", "c#"]),
        ("AT&T", ["t", "at&t"]),
        ("John's don't O'Neill\u2019s l'amour the dogs' tails", ["john", "don", "neill", "amour", "dog", "tail"]),
        ("snake_case 3.5 x", ["snake_cas", "3", "5", "x"]),
        ("\uff21\uff22\uff23 \ufb01ne \u2460 \u00bd", ["abc", "fine", "1", "1", "2"]),
        ("Stra\u00dfe STRASSE", ["strass", "strass"]),
        ("soft\u00adhyphen zero\ufeffwidth", ["softhyphen", "zerowidth"]),
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd \u05e9\u05dc\u05d5\u05dd", ["\u05e9\u05dc\u05d5\u05dd"] * 2),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", ["\u0939\u093f\u0928\u094d\u0926\u0940"]),
        ("東京都へ", ["東京", "京都", "都へ"]),
        ("서울에서 살다", ["서울", "울에", "에서", "살다"]),
        ("น้ำใจ", ["น้\u0e4d\u0e32", "\u0e32ใ", "ใจ"]),
        ("", []),
    ],
)
def test_a_text_is_split_into_these_terms(text: str, terms: list[str]) -> None:
    words = Words()
    assert [term for word in words.split(text) if (term := words.term(word)) is not None] == terms


def test_a_passage_has_its_single_characters_too_and_a_query_only_one_that_stands_alone() -> None:
    words = Words("zh")
    assert words.split("北京 水", passage=True) == ["北京", "北", "京", "水"]
    assert words.split("北京 水") == ["北京", "水"]


def test_turkish_has_two_letters_i(tmp_path: Path) -> None:
    words = Words("tr", stemmer="none", stopwords=None)
    assert words.split("ILIK \u0130NCE \u0131l\u0131k ince") == ["\u0131l\u0131k", "ince"] * 2


@pytest.mark.parametrize(
    ("language", "alike"),
    [
        ("de", ["Haus", "Häuser", "HÄUSER"]),
        ("el", ["Αθήνα", "ΑΘΗΝΑ", "Αθήνας"]),
        ("fr", ["école", "ÉCOLES", "l'école", "l\u2019école"]),
        ("ar", ["كتاب", "كِتَاب", "كتـاب"]),
    ],
)
def test_forms_of_a_word_are_one_term(language: str, alike: list[str]) -> None:
    words = Words(language)
    assert len({tuple(filter(None, map(words.term, words.split(form)))) for form in alike}) == 1


def test_accents_are_kept_or_folded(tmp_path: Path) -> None:
    texts = ["São Paulo", "a café in Việt Nam", "がく"]
    for accents, queries in (("keep", {"café": {1}, "cafe": set()}), ("fold", {"cafe": {1}, "CAFÉ": {1}, "Sao viet": {0, 1}})):
        retriever = Bm25Retriever(accents=accents)  # type: ignore[arg-type]
        retriever.index(items_of(texts), tmp_path / accents)
        assert found(retriever, tmp_path / accents, [*queries, "かく"]) == [*queries.values(), set()]


@pytest.mark.parametrize(
    ("query", "named", "other"),
    [
        ("C++", "Templates of C++ are long.", "Vitamin C, vitamin C and again vitamin C."),
        (".NET", "It runs on .NET today.", "Net income is net of tax, net of all."),
        ("R&D", "Their R&D grew.", "Vitamin D and R; vitamin D, R, R."),
        ("C++", "\u4ed6\u7528C++\u7f16\u7a0b", "\u7ef4\u751f\u7d20C\u548cC"),
    ],
)
def test_a_name_with_punctuation_finds_its_passage_first(tmp_path: Path, query: str, named: str, other: str) -> None:
    retriever = Bm25Retriever()
    retriever.index(items_of([other, named]), tmp_path)
    (hits,) = retriever.retrieve([[query]], tmp_path, 2)
    assert hits[0].item.content == named


def test_a_pattern_says_what_a_word_is(tmp_path: Path) -> None:
    retriever = Bm25Retriever(pattern=r"\pL[\pL\pN]*(?:[+#]+|&\pL+)?")
    retriever.index(items_of(["vitamin C", "C++ at AT&T", "C# Łódź"]), tmp_path)
    queries = ["C", "c++", "C#", "at&t", "ŁÓDŹ"]
    assert found(retriever, tmp_path, queries) == [{0}, {1}, {2}, {1}, {2}]


def test_what_is_no_setting_of_words_is_an_error_before_anything_is_read(subtests: pytest.Subtests) -> None:
    for setting, said in [
        ({"language": "german"}, r"language='german' is unknown; write its code: any, .*, de, "),
        ({"stemmer": "englsh"}, "there is no stemmer 'englsh'; did you mean 'english'"),
        ({"stopwords": "none"}, r"is no list; pass stopwords=None \(null in YAML\) to keep all words$"),
        ({"stopwords": False}, "stopwords=False: Input should be a valid string or None"),
    ]:
        with subtests.test(setting), pytest.raises(ConfigurationError, match=said):
            Bm25Retriever(**setting)  # type: ignore[arg-type]


def test_other_words_are_another_index(tmp_path: Path) -> None:
    Bm25Retriever(language="de").index(items_of(["Haus"]), tmp_path)
    with pytest.raises(IndexMismatchError, match=r"language: indexed with 'de', now 'en'.*stemmer: indexed with 'german'"):
        Bm25Retriever().retrieve([["Haus"]], tmp_path, 1)
    assert Bm25Retriever(stemmer="porter", stopwords="en").identity == Bm25Retriever().identity


def test_the_lists_of_stop_words_are_those_of_bm25s() -> None:
    lists = {language.stopwords for language in LANGUAGES.values() if language.stopwords is not None} | {"en_plus", "zh", "ko"}
    assert len(lists) == 15
    for name in lists:
        assert stop_words(name) == tuple(Tokenizer(stopwords=name).stopwords)


def test_a_search_starts_neither_a_compiler_nor_what_takes_a_gpu(tmp_path: Path) -> None:
    """bm25s imports numba, and jax, where they are installed; its lists of stop words need neither."""
    Bm25Retriever().index(items_of(["a red fox", "a dog"]), tmp_path)
    script = (
        "import sys; from nlp_retrieval import Bm25Retriever\n"
        f"print(len(Bm25Retriever().retrieve([['fox']], {str(tmp_path)!r}, 1)[0]), *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    found, *modules = done.stdout.split()
    assert found == "1"
    assert not set(modules) & {"bm25", "numba", "jax", "scipy", "torch"}
