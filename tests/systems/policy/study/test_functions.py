"""Single calls on an opened study."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval.errors import ConfigurationError, QueryError
from nlp_retrieval.systems.policy import functions
from nlp_retrieval.systems.policy.functions import (
    EmbeddedPrompt,
    embed_prompt,
    evaluate_chunks,
    open_study,
    retrieve_chunks,
    retrieve_chunks_with_hop,
    run_script,
)
from nlp_retrieval.systems.policy.study import PolicyStudy

from .studies import HashedWords, plans

PROMPT = "How does Ostland make its power?"


def test_a_prompt_is_embedded_by_the_models_of_the_study(asked: PolicyStudy) -> None:
    embedded = embed_prompt(PROMPT, study=asked)
    assert embedded.transformer is not None
    assert np.array_equal(embedded.transformer, HashedWords(64).encode_queries([PROMPT])[0])
    assert embedded.word2vec is None, "this study has no word vectors"


def test_chunks_are_found_of_one_country_or_of_all(asked: PolicyStudy) -> None:
    embedded = embed_prompt(PROMPT, study=asked)
    ours = retrieve_chunks(embedded, PROMPT, top_k=20, country="Ostland", min_similarity=0.0, study=asked)
    assert {hit.item.metadata["country"] for hit in ours} == {"Ostland"}
    assert len(ours) == 8
    assert [ours[0][key] for key in ("id", "content")] == [ours[0].item.item_id, ours[0].item.content]  # type: ignore[index]
    assert 0 < ours[0]["combined_score"] <= 1  # type: ignore[index]
    with pytest.raises(KeyError, match="no 'score_regex'; there are id, content, combined_score"):
        ours[0]["score_regex"]  # type: ignore[index]
    assert len(retrieve_chunks(None, PROMPT, top_k=50, min_similarity=0.0, study=asked)) == len(plans())
    assert len(retrieve_chunks(None, PROMPT, top_k=2, min_similarity=0.0, study=asked)) == 2
    with pytest.raises(QueryError, match="did you mean 'Ostland'"):
        retrieve_chunks(None, PROMPT, country="Ostlan", study=asked)


def test_single_calls_keep_to_the_filter_of_the_study(asked: PolicyStudy) -> None:
    later = PolicyStudy(asked.profile, asked.searcher, asked.hop, where={"year": 2024})
    for country in ("Ostland", None):
        found = (
            retrieve_chunks(None, PROMPT, 50, country, 0.0, study=later),
            retrieve_chunks_with_hop(PROMPT, 50, country, study=later),
        )
        assert {hit.item.metadata["year"] for hits in found for hit in hits} == {2024}


def test_vectors_of_another_model_are_refused(asked: PolicyStudy) -> None:
    wrong = EmbeddedPrompt(np.ones(3, np.float32), None)
    with pytest.raises(QueryError, match=r"has shape \[3\], and the study's \[64\]"):
        retrieve_chunks(wrong, PROMPT, study=asked)
    with pytest.raises(QueryError, match=r"has shape \[3\]"):
        evaluate_chunks(plans(), PROMPT, wrong, study=asked)


def test_hops_are_those_of_the_study(asked: PolicyStudy) -> None:
    found = retrieve_chunks_with_hop(PROMPT, 4, "Ostland", study=asked)
    assert [hit.item.item_id for hit in found] == [
        hit.item.item_id for hit in asked.ask(PROMPT, "Ostland", "hop", top_k=4)["hop"]
    ]


def test_given_chunks_are_scored_and_all_come_back_best_first(asked: PolicyStudy) -> None:
    scored = evaluate_chunks(plans()[:5], PROMPT, study=asked)
    assert {hit.item.item_id for hit in scored} == {item.item_id for item in plans()[:5]}
    assert [hit.score for hit in scored] == sorted((hit.score for hit in scored), reverse=True)
    assert all("multi_signal.patterns" in hit.signals for hit in scored)
    assert evaluate_chunks([], PROMPT, study=asked) == []
    with pytest.raises(QueryError, match=r"chunk 2 is 'wind' \(str\); pass what retrieve_chunks returned"):
        evaluate_chunks([*plans()[:1], "wind"], PROMPT, study=asked)


@pytest.fixture
def nothing_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_opened", functions._OpenStudy())


@pytest.mark.usefixtures("nothing_opened")
def test_a_script_asks_one_question_of_one_country_or_all(asked: PolicyStudy, tmp_path: Path) -> None:
    open_study(asked, tmp_path)
    report = run_script(2, "Ile")
    assert (list(report.files), report.questions) == (["Ile"], (2,))
    assert len(run_script(output=tmp_path / "all").files) == 3
    assert (tmp_path / "answers" / "Ile.json").is_file()
    for number, asked_so in enumerate(({"use_hop_retrieval": True}, {"method": True}, {"method": "both"}, {"method": False})):
        file = run_script(2, "Ile", **asked_so, output=tmp_path / str(number)).files["Ile"]
        method = json.loads(file.read_text())["metadata"]["retrieval_method"]
        assert method == ("vector_similarity" if number == 3 else "vector_similarity+graph_hop")
    with pytest.raises(ConfigurationError, match=r"method='hop' and use_hop_retrieval=True say two things"):
        run_script(2, "Ile", "hop", use_hop_retrieval=True)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(embed_prompt, PROMPT).result().transformer is not None


@pytest.mark.usefixtures("nothing_opened")
def test_without_an_opened_study_the_functions_say_how_to_open_one() -> None:
    with pytest.raises(ConfigurationError, match=r'call open_study\("study.yaml"\) first'):
        run_script()
