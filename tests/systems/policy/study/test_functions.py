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
    embed_prompt,
    evaluate_chunks,
    open_study,
    retrieve_chunks,
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
    assert {hit["metadata"]["country"] for hit in ours} == {"Ostland"}
    assert len(ours) == 8
    assert 0 < ours[0]["combined_score"] <= 1
    assert len(retrieve_chunks(None, PROMPT, top_k=50, min_similarity=0.0, study=asked)) == len(plans())
    assert len(retrieve_chunks(None, PROMPT, top_k=2, min_similarity=0.0, study=asked)) == 2
    with pytest.raises(QueryError, match="did you mean 'Ostland'"):
        retrieve_chunks(None, PROMPT, country="Ostlan", study=asked)
    with pytest.raises(QueryError, match="are several; call it for each"):
        retrieve_chunks(None, PROMPT, country=["Ostland", "Ile"], study=asked)  # type: ignore[arg-type]
    for vectors in (embedded.transformer, {"transformer": embedded.transformer}, (embedded.transformer,)):
        with pytest.raises(QueryError, match="embedded prompts are two vectors"):
            retrieve_chunks(vectors, PROMPT, study=asked)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="no question '1'; they are numbered 1 to 2"):
        run_script("1", study=asked)  # type: ignore[arg-type]


def test_given_chunks_are_scored_and_all_come_back_best_first(asked: PolicyStudy) -> None:
    scored = evaluate_chunks(plans()[:5], PROMPT, study=asked)
    assert {hit["id"] for hit in scored} == {item.item_id for item in plans()[:5]}
    assert [hit["score"] for hit in scored] == sorted((hit["score"] for hit in scored), reverse=True)
    assert all("multi_signal.patterns" in hit["signals"] for hit in scored)
    assert evaluate_chunks([], PROMPT, study=asked) == []
    with pytest.raises(QueryError, match=r"chunk 2 is 'wind' \(str\); pass what retrieve_chunks returned"):
        evaluate_chunks([*plans()[:1], "wind"], PROMPT, study=asked)  # type: ignore[list-item]


def test_chunks_are_plain_dictionaries_that_json_writes_and_that_are_taken_back(asked: PolicyStudy) -> None:
    chunks = retrieve_chunks(None, PROMPT, 5, "Ostland", 0.0, study=asked)
    read = json.loads(json.dumps(chunks))
    assert read == chunks
    assert {one["id"] for one in evaluate_chunks(read, PROMPT, study=asked)} == {one["id"] for one in chunks}
    (own,) = evaluate_chunks([{"id": "x", "content": "Wind supplies 12% of the power."}], PROMPT, study=asked)
    assert own["id"] == "x"
    assert own["regex_score"] > 0


def test_what_is_passed_as_vectors_is_what_is_searched_with(asked: PolicyStudy) -> None:
    transformer, word2vec = embed_prompt("The plan costs 650 dollars a head.", study=asked)
    chunks = retrieve_chunks((transformer, word2vec), PROMPT, 8, "Ostland", 0.0, study=asked)
    nearest = max(chunks, key=lambda chunk: chunk["transformer_similarity"])
    assert nearest["id"] == "ostland-2024-cost"
    assert nearest["transformer_similarity"] > 0.8
    own = retrieve_chunks(embed_prompt(PROMPT, study=asked), PROMPT, 8, "Ostland", 0.0, study=asked)
    assert own == retrieve_chunks(None, PROMPT, 8, "Ostland", 0.0, study=asked)


@pytest.fixture
def nothing_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_opened", {})


@pytest.mark.usefixtures("nothing_opened")
def test_a_script_asks_one_question_of_one_country_or_all(asked: PolicyStudy, tmp_path: Path) -> None:
    open_study(asked, tmp_path)
    (ile,) = run_script(2, "Ile")
    assert (ile["metadata"]["country"], list(ile["questions"])) == ("Ile", ["question_2"])
    assert json.loads((tmp_path / "Ile.json").read_text()) == ile
    assert len(run_script(output=tmp_path / "all")) == 3
    for number, asked_so in enumerate(({"use_hop_retrieval": True}, {"use_hop": True}, {"method": "both"}, {"use_hop": False})):
        (answers,) = run_script(2, "Ile", **asked_so, output=tmp_path / str(number))  # type: ignore[arg-type]
        method = answers["metadata"]["retrieval_method"]
        assert method == ("vector_similarity" if number == 3 else "vector_similarity+graph_hop")
    with pytest.raises(ConfigurationError, match=r"method='hop' and use_hop=True say two things"):
        run_script(2, "Ile", True, method="hop")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(embed_prompt, PROMPT).result().transformer is not None


@pytest.mark.usefixtures("nothing_opened")
def test_without_an_opened_study_the_functions_say_how_to_open_one() -> None:
    with pytest.raises(ConfigurationError, match=r'call open_study\("study.yaml"\) first'):
        run_script()
