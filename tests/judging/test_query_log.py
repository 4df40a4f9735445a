"""Questions from a log: each once, near-duplicates in a family, and a sample that others can draw again."""

from __future__ import annotations

import json

import pytest
from fuzz.command_lines import ended

from nlp_retrieval import TopicsLoader
from nlp_retrieval.errors import SourceError
from nlp_retrieval.judging.query_log import families_of, sample_log

LOG = [
    "Who eats krill?",
    "who  eats KRILL",
    "\uff57\uff48\uff4f eats krill",
    "cafe\u0301 hours",
    "café hours",
    "",
    "?!",
    "\u200ffoxes",
]


def test_case_spaces_and_unicode_make_no_other_question(tmp_path):
    (tmp_path / "log.txt").write_text("".join(f"{line}\n" for line in LOG), "utf-8")
    sample = sample_log(tmp_path / "log.txt")
    assert [query.text for query in sample.queries] == ["Who eats krill?", "cafe\u0301 hours", "\u200ffoxes"]
    assert (sample.entries, sample.unusable, sample.repeated, sample.distinct) == (8, 2, 3, 3)
    assert [query.metadata["times"] for query in sample.queries] == [3, 2, 1]
    assert not any(query.is_synthetic or query.family for query in sample.queries)


def test_families_are_those_of_a_comparison_of_every_two():
    """The oracle compares the words of every two questions letter by letter."""
    words = ["whale", "whales", "krills", "krilla", "paradox", "pardox", "2019", "2020", "fox", "foxes", "singer"]
    texts = [f"{one} {other}" for one in words for other in words if one < other]

    def key(text):
        return sorted({word.removesuffix("es") if word == "foxes" else word.removesuffix("s") for word in text.split()})

    def typo(one, other):
        if one == other:
            return True
        if min(len(one), len(other)) < 4 or one[0] != other[0] or not (one + other).isalpha():
            return False
        less = [{word, *(word[:at] + word[at + 1 :] for at in range(1, len(word)))} if len(word) > 4 else {word}
                for word in (one, other)]  # fmt: skip
        return bool(less[0] & less[1])

    def alike(one, other):
        first, second = key(one), key(other)
        if len(first) != len(second):
            return False
        rest = [sorted(set(first) - set(second)), sorted(set(second) - set(first))]
        return len(rest[0]) == 0 or (len(rest[0]) == 1 and typo(rest[0][0], rest[1][0]))

    groups = list(range(len(texts)))
    for number, one in enumerate(texts):
        for before in range(number):
            if alike(one, texts[before]) and groups[number] != groups[before]:
                low, high = sorted((groups[number], groups[before]))
                groups = [low if group == high else group for group in groups]
    assert families_of(texts) == groups


def test_a_csv_becomes_a_file_that_queries_are_read_from(tmp_path):
    (tmp_path / "log.csv").write_text('date,User Query,clicks\n1,"krill, whose food?",9\n2,foods of whales,1\n2,whale food,1\n')
    done = ended(["judge", "questions", "from-log", str(tmp_path / "log.csv"), str(tmp_path / "asked.jsonl")])
    assert done.code == 0, done.err
    assert "3 entries, 0 without words or too long, 0 repeated; 3 questions in 2 families" in done.err
    queries = TopicsLoader(tmp_path / "asked.jsonl").queries()
    assert [query.text for query in queries] == ["krill, whose food?", "foods of whales", "whale food"]
    assert queries[0].family is None
    assert queries[1].family == queries[2].family == queries[1].query_id
    (tmp_path / "log.jsonl").write_text('{"log": {"q": "krill"}}\n')
    with pytest.raises(SourceError, match=r'line 1: no "log\.q" field \(found: "log"\); pass column='):
        sample_log(tmp_path / "log.jsonl", column="log.q")
    logged = ("krill by password=hunter22", "Krill by password=hunter23", "sk-0123456789abcdefghij")
    (tmp_path / "log.jsonl").write_text('{"page": 2}\n' + "".join(f"{json.dumps({'q': text})}\n" for text in logged))
    sample = sample_log(tmp_path / "log.jsonl", column="q")
    assert ([query.text for query in sample.queries], sample.unusable) == (["krill by password=***"], 2)
