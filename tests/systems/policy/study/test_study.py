"""A study asks what it is asked, of whom it is asked, and goes on where it stopped."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nlp_retrieval.errors import (
    ConfigurationError,
    OutputError,
    QueryError,
)
from nlp_retrieval.systems.policy.answers import SIGNAL_FIELDS, AnswerFile
from nlp_retrieval.systems.policy.log import log_to
from nlp_retrieval.systems.policy.study import PolicyStudy

from .studies import answers_in, plans

SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "policy-answers.schema.json").read_text("utf-8"))


def test_every_country_is_asked_every_question_and_gets_a_file_of_the_documented_form(
    asked: PolicyStudy, tmp_path: Path
) -> None:
    report = asked.run(tmp_path)
    assert sorted(report.files) == ["Costa Verde", "Ile", "Ostland"]
    for country, path in report.files.items():
        told = json.loads(path.read_text("utf-8"))
        jsonschema.validate(told, SCHEMA)
        assert told["metadata"]["country"] == country
        assert told["metadata"]["total_questions"] == 2
        assert told["metadata"]["retrieval_method"] == "vector_similarity"
        assert set(told["questions"]) == {"question_1", "question_2"}
        for number, answer in enumerate(told["questions"].values(), start=1):
            assert answer["question_number"] == number
            assert country in answer["question"]
            assert answer["chunk_count"] == len(answer["top_k_chunks"]) <= 3
            for chunk in answer["top_k_chunks"]:
                assert {"id", "content", "combined_score", *SIGNAL_FIELDS} <= set(chunk)
                assert chunk["metadata"]["country"] == country


def test_the_schema_in_the_documentation_is_that_of_the_files() -> None:
    assert AnswerFile.model_json_schema() == SCHEMA


def test_the_order_is_that_of_all_signals_computed_by_hand(asked: PolicyStudy) -> None:
    hits = asked.ask(1, "Ostland", top_k=50)["vector"]
    weights = {"transformer": 0.25, "patterns": 0.30, "fuzzy": 0.25}
    for hit in hits:
        parts = {name: hit["signals"][f"multi_signal.{name}"] for name in weights if f"multi_signal.{name}" in hit["signals"]}
        expected = sum(weights[name] * value for name, value in parts.items()) / sum(weights[name] for name in parts)
        assert hit["score"] == pytest.approx(expected)
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert len(hits) == sum(item.metadata["country"] == "Ostland" for item in plans())


def test_both_methods_stand_side_by_side_with_the_same_signals_and_a_chain(asked: PolicyStudy, tmp_path: Path) -> None:
    asked.run(tmp_path, "Ostland", 1, "both", top_k=20)
    told = json.loads((tmp_path / "Ostland.json").read_text("utf-8"))
    jsonschema.validate(told, SCHEMA)
    answer = told["questions"]["question_1"]
    assert told["metadata"]["retrieval_method"] == "vector_similarity+graph_hop"
    signals = {
        chunk["id"]: [chunk[field] for field in ("combined_score", *SIGNAL_FIELDS)]
        for chunk in answer["vector"]["top_k_chunks"]
    }
    hop = answer["hop"]["top_k_chunks"]
    assert {chunk["id"]: [chunk[field] for field in ("combined_score", *SIGNAL_FIELDS)] for chunk in hop} == signals
    assert any(step["kind"] == "TEMPORAL_FOLLOWS" for chunk in hop for step in chunk.get("chain", {}).get("steps", []))
    only = asked.run(tmp_path / "hop", "Ostland", 1, "hop", top_k=20)
    (file,) = only.answers()
    assert file.metadata.retrieval_method == "graph_hop"
    assert [chunk.id for chunk in file.questions["question_1"].top_k_chunks or []] == [chunk["id"] for chunk in hop]


def test_a_study_has_a_filter_of_its_own_which_holds_beside_that_of_a_call(asked: PolicyStudy) -> None:
    later = PolicyStudy(asked.profile, asked.searcher, asked.hop, where={"year": {"gte": 2024}})
    for found in (later.ask(1, "Ostland", "both", top_k=50), later.ask(1, "Ostland", "both", top_k=50, where={"position": 0})):
        for hits in found.values():
            assert {hit["metadata"]["year"] for hit in hits} == {2024}
    assert later.fingerprint(later.settings()) != asked.fingerprint(asked.settings())
    assert later.fingerprint(later.settings()) == asked.fingerprint(asked.settings(where={"year": {"gte": 2024}}))


def test_an_answer_that_is_there_is_not_asked_again_and_further_questions_join_it(asked: PolicyStudy, tmp_path: Path) -> None:
    first = asked.run(tmp_path, ["Ile", "Ostland"], 2)
    assert (first.answered, first.kept) == (("Ile", "Ostland"), ())
    before = {path: path.read_bytes() for path in first.files.values()}
    second = asked.run(tmp_path, ["Ile", "Ostland"], [2])
    assert (second.answered, second.kept, second.replaced) == ((), ("Ile", "Ostland"), ())
    assert {path: path.read_bytes() for path in first.files.values()} == before
    third = asked.run(tmp_path)
    assert third.answered == ("Costa Verde", "Ile", "Ostland")
    asked.run(tmp_path / "at once")
    assert answers_in(tmp_path) == answers_in(tmp_path / "at once")


def test_of_other_settings_the_same_cell_alone_is_replaced_and_told(asked: PolicyStudy, tmp_path: Path) -> None:
    asked.run(tmp_path, top_k=1)
    before = answers_in(tmp_path)
    report = asked.run(tmp_path, "Ile", 1, "both", top_k=2)
    assert (report.answered, report.replaced) == (("Ile",), ("Ile",))
    after = answers_in(tmp_path)
    assert after["Ile.json"]["questions"]["question_1"]["retrieval_method"] == "vector_similarity+graph_hop"
    assert after["Ile.json"]["questions"]["question_2"] == before["Ile.json"]["questions"]["question_2"]
    assert {name: after[name] for name in after if name != "Ile.json"} == {
        name: before[name] for name in before if name != "Ile.json"
    }
    assert len(list(report.everything())) == 3


def test_a_file_that_holds_no_answers_is_not_overwritten(asked: PolicyStudy, tmp_path: Path) -> None:
    for damage in (b"", b"[]", b'{"metadata": {}, "questions": {}}'):
        (tmp_path / "Ile.json").write_bytes(damage)
        with pytest.raises(OutputError, match=r"Ile\.json holds no answers about 'Ile' .*choose another output folder"):
            asked.run(tmp_path, "Ile")
        assert (tmp_path / "Ile.json").read_bytes() == damage


def test_what_cannot_be_asked_is_refused_before_anything_is_written(
    asked: PolicyStudy, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    nearest = r"no country 'ostlnad' in this index; did you mean 'Ostland' or 'Costa Verde'\?"
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"subjects": "ostlnad"}, QueryError, nearest),
        ({"questions": 9}, ConfigurationError, "no question 9; they are numbered 1 to 2"),
        ({"method": "hops"}, ConfigurationError, "no method 'hops'; did you mean 'hop'"),
        ({"where": {"yaer": 3}}, QueryError, "yaer"),
    ]
    for words, error, said in cases:
        with subtests.test(words=words):
            with pytest.raises(error, match=said):
                asked.run(tmp_path / "out", **words)
            assert not (tmp_path / "out").exists()


def test_the_log_has_marks_levels_and_no_line_of_its_own_making(asked: PolicyStudy, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "retrieve.log"
    with log_to(log, "debug"):
        asked.run(tmp_path / "out", "Ile", method="both")
        with pytest.raises(QueryError):
            asked.run(tmp_path / "out", "Nowhere\nINFO [RETRIEVE] All results completed")
    lines = log.read_text("utf-8").splitlines()
    assert all(line[:4].isdigit() and line.split()[2] in {"DEBUG", "INFO", "ERROR"} for line in lines), lines
    for mark in ("[4_RETRIEVE]", "[VECTOR_SIMILARITY]", "[HOP_RETRIEVE]"):
        assert any(mark in line for line in lines)
    assert any("DEBUG" in line and "'metadata.country': 'Ile'" in line and "2 chunks" in line for line in lines)
    assert sum("All results completed" in line and " INFO " in line.partition("[")[0] + " " for line in lines) == 1
    assert sum(" ERROR " in line for line in lines) == 1
    size = log.stat().st_size
    asked.run(tmp_path / "silent", "Ile")
    assert log.stat().st_size == size, "nobody listens any more"
    assert logging.getLogger("nlp_retrieval.policy").level == logging.NOTSET
