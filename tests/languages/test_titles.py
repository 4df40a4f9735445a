"""Titles are found as mentions in running text, names in quotation marks, and sentences end, in every script."""

from __future__ import annotations

from pathlib import Path

import pytest
from hashed_words import items_of

from languages.passages import SAMPLES
from nlp_retrieval.core.index.items import ItemTable, write_items
from nlp_retrieval.retrievers.link_graph.mentions import TitleMentions
from nlp_retrieval.text.mentions import entities_by_rules
from nlp_retrieval.text.sentences import sentences_of
from nlp_retrieval.text.surfaces import SurfaceMatcher, surface_of

TITLES = [sample.title for sample in SAMPLES.values()]
TEXTS = [sample.mention for sample in SAMPLES.values()]


def mentioned(title: str, text: str) -> list[str]:
    surface = surface_of(title)
    assert surface is not None
    return [text[start:end] for _, start, end in SurfaceMatcher([(0, surface)]).mentions(text)]


def test_a_title_is_found_in_running_text() -> None:
    for sample in SAMPLES.values():
        assert mentioned(sample.title, sample.mention) == [sample.title]


def test_each_text_links_to_the_passage_that_it_names_and_to_no_other(tmp_path: Path) -> None:
    n = len(TITLES)
    items = items_of([*("about it" for _ in TITLES), *TEXTS], [*TITLES, *(f"Report {number}" for number in range(n))])
    write_items(items, tmp_path)
    links = TitleMentions().extract(ItemTable(tmp_path / "items.arrow"))
    assert list(zip(links.sources.tolist(), links.targets.tolist(), strict=True)) == [(n + row, row) for row in range(n)]


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("서울", "서울은 크다. 남서울은 작다.", ["서울"]),
        ("ハス", "バスに乗る", []),
        ("東京（曲）", "東京へ", ["東京"]),
        ("กรุงเทพ", "ไปกรุงเทพมหานคร", ["กรุงเทพ"]),
    ],
)
def test_a_mention_in_a_script_without_spaces(title: str, text: str, expected: list[str]) -> None:
    surface = surface_of(title)
    found = [] if surface is None else mentioned(title, text)
    assert found == expected


def test_of_two_titles_in_a_script_without_spaces_the_longer_one_is_meant() -> None:
    surfaces = [(row, surface_of(title)) for row, title in enumerate(["東京", "東京都", "京都"])]
    matcher = SurfaceMatcher(surfaces)  # type: ignore[arg-type]
    text = "東京都と京都"
    assert [text[start:end] for _, start, end in matcher.mentions(text)] == ["東京都", "京都"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("彼は「吾輩は猫である」を読んだ。", {"吾輩は猫である"}),
        ("Летом мы читаем «Войну и мир» вслух.", {"летом", "воину", "воину и мир"}),
        ("Sie liest „Die Räuber“ laut.", {"sie", "die rauber"}),
    ],
)
def test_names_are_found_by_quotation_marks_and_capitals_of_any_script(text: str, names: set[str]) -> None:
    assert entities_by_rules(text) == names


@pytest.mark.parametrize(
    "sentences",
    [
        ["猫は寝ている。", "犬は？", "鳥は歌う！", "おわり"],
        ["هل جاء؟ ", "نعم. ", "شكرا."],
        ["वह आया। ", "फिर गया॥ ", "अंत"],
        ["Ο Γιάννης ήρθε. ", "Πότε\u037e ", "Χθες."],
        ["Он жил в г. Москве, т. е. в столице. ", "А. С. Пушкин писал стихи! ", "Да?"],
        ["он пришёл в 5 ч. утра. ", "Потом ушёл."],
    ],
)
def test_sentences_end_where_their_script_ends_them(sentences: list[str]) -> None:
    text = "".join(sentences)
    assert [text[begin:end] for begin, end in sentences_of(text)] == [sentence.strip() for sentence in sentences]


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("Vu à l'Université de Paris et d'Orléans", {"vu", "universite de paris", "orleans"}),
        ("Côte d\u2019Ivoire", {"cote d'ivoire"}),
        ("by O\u2019Neill", {"o'neill"}),
    ],
)
def test_names_with_apostrophes_are_found_whole(text: str, entities: set[str]) -> None:
    assert entities_by_rules(text) == entities
