from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.text.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[begin:end] for begin, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["Smith et al. found 3.5 mg.", "The U.S. Army left.", "See Fig. 2 for it, e.g. here."],
        ["Patients lack vitamin C.", "The dose was small.", "It was approved by J. K. Rowling.", "John F. Kennedy won."],
        ['He said "No."', "Then he left.", '"Why?" he asked.', "Yahoo! was large."],
        ["Dr. Meyer met Prof. Li at 5 p.m. in Ulm.", "It rained."],
        ["Am 3. Oktober 1990 war es z. B. in Bonn kühl.", "Im Jahr 2019 nicht."],
        ["Mme. Curie a payé env. 30 euros.", "Le XIXe siècle av. J.-C. fut long.", "W 1990 r. źle było."],
        ["La Sra. López vive en EE. UU.", "Véase pág. 12.", "Il dott. Verdi parla.", "Dhr. Jansen is er."],
        ["The ratio is 1.5.", "Next comes the sum.", "1.2 Methods are old."],
        ["Cells died.", "p53 was active.", "დედა მოვიდა.", "მამა წავიდა."],
        ["People have MS.", "Ruth Ellerby does not.", "It has the notes C, E, and G.", "Advance sells parts."],
        [
            "« Elle part. »",
            "L'eau d'env. 300 bars monte.",
            "»Ich gehe.«",
            "„Er blieb.“",
            "»Im Jahr 9 n. Chr. nicht.«",
            "Las obras del s. XIX, del 2 sep. 2024, son de la pl. Mayor.",
            "It is at 65° N.",
            "Ice is there.",
        ],
        ["The idea was John's.", "3 people agreed.", "It was the EU's.", "II was next."],
        ["He lives at 5th Rd.", "Two on Elm rd.", "Three had MM.", "Next came Phil.", "Walls of 10 ft.", "Workers came."],
        ["Er kam am 3.", "Danach ging er."],
        ["Prof. Dr. med. Kern kam am 1. Jan. 2020.", "Es waren rd. 2 Mio. Gäste.", "Es kostete 3 Mio.", "Die Stadt zahlt."],
        [
            "Sie gewann den 3. Platz vor Hr. Kern.",
            "Then came Karl V.",
            "The heir was young.",
            "Lui et M. Roy vivent ici.",
            "It is from c. 1250, pop. 300.",
        ],
    ],
)
def test_a_text_is_parted_where_its_sentences_end(expected):
    assert sentences(" ".join(expected)) == expected


def test_sentences_without_spaces_between_them_are_parted():
    expected = ["今日は晴れ。", "明日は雨\uff01", "本当\uff1f", "はい"]
    assert sentences("".join(expected)) == expected


def test_a_sentence_without_an_end_is_cut():
    spans = sentence_spans("word " * 4_000)
    assert len(spans) > 3
    assert max(end - begin for begin, end in spans) <= 5_000


@given(st.text(alphabet=st.sampled_from('aB1 .!?)"。\n§é') | st.characters(), max_size=200))
def test_sentences_cover_all_but_white_space_in_order(text):
    spans = sentence_spans(text)
    covered = 0
    for begin, end in spans:
        assert covered <= begin < end
        assert not text[covered:begin].strip()
        assert text[begin:end] == text[begin:end].strip()
        covered = end
    assert not text[covered:].strip()
