"""Entities sentence by sentence."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrievers.link_graph.corpora import passage

from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.text.mentions import EntityFinder, PassageEntities, SpacyMentions, entities_by_rules, entities_by_sentence

RULES = EntityFinder("rules")


def read(*items: SearchableItem) -> list[PassageEntities]:
    return list(entities_by_sentence(items, RULES))


def test_each_sentence_is_read_by_itself_and_the_title_is_what_all_are_about() -> None:
    (found,) = read(passage("Heat (film)", "Shot in Paris. Al Pacino met Robert De Niro.  \n Then nothing."))
    assert found.about == {"heat"}
    assert [set(names) for names in found.sentences] == [{"shot", "paris"}, {"al pacino", "robert de niro"}, set()]
    assert found.all == {"heat", "shot", "paris", "al pacino", "robert de niro"}
    assert list(found.spans[:2]) == [(0, 14), (15, 44)]


def test_sentences_that_a_source_counts_are_those_of_the_source_but_for_empty_ones() -> None:
    (found,) = read(passage(None, "Paris and Rome", "a", sentence_starts=[0, 5, 5, 10]))
    assert found.spans == ((0, 5), (5, 10), (10, 14))
    assert [set(names) for names in found.sentences] == [{"paris"}, set(), {"rome"}]


@pytest.mark.parametrize("content", ["", " \n ", "nothing here", "東京は大きい。", "هذا نص"])
def test_a_passage_may_name_nothing(content: str) -> None:
    (found,) = read(passage(None, content, "a"))
    assert found.all == frozenset()
    assert len(found.spans) == (1 if content.strip() else 0)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("Пётр Чайковский родился в Воткинске.", {"петр чаиковскии", "воткинске"}),
        ("Εδώ τραγούδησε η Μαρία Κάλλας.", {"μαρια καλλασ"}),
        ("Er schrieb \u201cdas schloss\u201d.", {"er", "das schloss"}),
    ],
)
def test_other_scripts_with_capitals_have_names(content: str, names: set[str]) -> None:
    (found,) = read(passage(None, content, "a"))
    assert names <= found.all


def test_what_is_longer_than_sixteen_words_is_no_name() -> None:
    short, long = " ".join(["Aa"] * 16), " ".join(["Bb"] * 17)
    (found,) = read(passage(None, f"{short}. {long}.", "a"))
    assert found.all == {short.lower()}


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=60)), max_size=5))
def test_any_texts_give_the_entities_of_their_sentences(texts: list[tuple[str, str]]) -> None:
    items = [passage(title, content, str(row)) for row, (title, content) in enumerate(texts)]
    for item, found in zip(items, read(*items), strict=True):
        sentences = [item.content[start:end] for start, end in found.spans]
        assert all(sentence.strip() for sentence in sentences)
        assert [set(names) for names in found.sentences] == [entities_by_rules(sentence) for sentence in sentences]
        assert "".join("".join(sentences).split()) == "".join(item.content.split())


def test_a_pipeline_reads_for_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, both = threading.Lock(), threading.Barrier(2)

    class Pipeline:
        def pipe(self, texts):
            assert reading.acquire(blocking=False), "another thread reads"
            for text in texts:
                yield SimpleNamespace(ents=[SimpleNamespace(text=text)])
            reading.release()

    mentions = SpacyMentions("any")
    monkeypatch.setattr(mentions, "_load", Pipeline)

    def read(name: str) -> list[set[str]]:
        both.wait(30)
        return list(mentions.entities([name] * 2000))

    with ThreadPoolExecutor() as pool:
        paris, rome = pool.map(read, ("Paris", "Rome"))
    assert (paris[-1], rome[-1]) == ({"paris"}, {"rome"})
