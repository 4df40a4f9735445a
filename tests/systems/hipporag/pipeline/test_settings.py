"""Settings of HippoRAG 2: what cannot be meant is refused with where it stands, and no key is shown or kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from nlp_retrieval.encoders.endpoint import OpenAIEncoder
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.systems.hipporag.pipeline import check_encoder, encoder_of, index_folder, knowledge_place, language_model
from nlp_retrieval.systems.hipporag.settings import HippoRagSettings

DESCRIBED = """
pipeline: {name: hipporag2}
llm: {provider: openai, model_name: gpt-4o-mini, api_key: "${OPENAI_API_KEY}", base_url: null}
embedding: {provider: sentence_transformers, model_name: nvidia/NV-Embed-v2, dimension: 1024, batch_size: 32}
retrieval: {query_entity_top_k: 5, graph_expansion_hops: 2, passage_top_k: 20, enable_ppr: true}
indexing: {batch_size: 100, enable_checkpointing: true, retry_attempts: 3, retry_backoff_base: 2}
storage: {save_dir: ./outputs/hipporag2, iris_namespace: HIPPORAG}
evaluation: {hotpotqa_dataset_path: null}
"""
SECRET = "sk-this-is-a-secret-key-123"


def settings(**sections):
    return HippoRagSettings.of({"llm": {"provider": "ollama", "model_name": "small"}} | sections)


def test_the_file_as_it_was_described_is_read(tmp_path):
    (tmp_path / "hipporag2.yaml").write_text(DESCRIBED)
    read = HippoRagSettings.read(tmp_path / "hipporag2.yaml")
    assert read.model_dump(
        exclude={
            "llm": {"temperature", "max_tokens"},
            "retrieval": {"linking", "filter_facts", "extract_query_entities"},
            "embedding": {"api_key", "base_url", "trust_remote_code"},
            "storage": {"index_dir"},
        }
    ) == yaml.safe_load(DESCRIBED)
    iris, hops = read.unused()
    assert "iris_namespace is not used: save_dir is not a URL of InterSystems IRIS" in iris
    assert "graph_expansion_hops has an effect only with linking: entities" in hops


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"llm": {"provider": "opnai"}}, "llm.provider: Input should be 'openai', 'vllm', 'ollama' or 'openai-compatible'"),
        ({"llm": {"provider": "openai"}}, "llm: provider openai needs api_key: write ${OPENAI_API_KEY}"),
        ({"llm": {"provider": "openai", "api_key": SECRET}}, "write api_key as ${NAME}"),
        ({"embedding": {"provider": "custom"}}, "embedding: provider custom needs base_url"),
        ({"embedding": {"batch_size": 1001}}, "embedding.batch_size: Input should be less than or equal to 1000"),
        ({"retrieval": {"passage_top_k": 0}}, "retrieval.passage_top_k: Input should be greater than 0"),
        ({"retrieval": {"graph_expansion_hops": 3}}, "retrieval.graph_expansion_hops"),
        (
            {"storage": {"save_dir": f"postgresql://me:{SECRET}@here/db"}},
            "storage: save_dir is a URL with a password; write ${NAME}",
        ),
        (
            {"storage": {"save_dir": "iris://me@here:1972/USER", "iris_namespace": "HIPPORAG"}},
            "save_dir names the namespace USER, and iris_namespace HIPPORAG; keep one",
        ),
        ({"retrieval": 3}, "retrieval is int; write its settings below it"),
        ({"retrieval": {"passage_topk": 3}}, "unknown key 'passage_topk'; did you mean 'passage_top_k'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(sections, said):
    with pytest.raises(ConfigurationError) as refused:
        settings(**sections)
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)


def test_settings_without_a_model_are_told_the_keys():
    with pytest.raises(ConfigurationError, match="'llm' missing; valid keys: pipeline, llm, embedding"):
        HippoRagSettings.of({})


@pytest.mark.parametrize(
    ("storage", "knowledge", "index"),
    [
        ({}, "outputs/hipporag2/knowledge.db", "outputs/hipporag2/index"),
        ({"save_dir": "here"}, "here/knowledge.db", "here/index"),
        ({"save_dir": "${STORE}"}, "env:STORE", "outputs/hipporag2/index"),
        ({"save_dir": "env:STORE", "index_dir": "there"}, "env:STORE", "there"),
        ({"save_dir": "postgresql://me@here/db"}, "postgresql://me@here/db", "outputs/hipporag2/index"),
        (
            {"save_dir": "iris://me@here:1972", "iris_namespace": "HIPPORAG"},
            "iris://me@here:1972/HIPPORAG",
            "outputs/hipporag2/index",
        ),
    ],
)
def test_knowledge_is_in_a_folder_or_a_database_and_the_index_in_a_folder(storage, knowledge, index):
    chosen = settings(storage=storage)
    assert knowledge_place(chosen) == knowledge
    assert index_folder(chosen) == Path(index)
    assert bool(chosen.unused()) is False


def test_a_key_is_named_and_read_from_the_environment_alone(monkeypatch):
    chosen = settings(llm={"provider": "openai", "api_key": "${SOME_KEY}"}, embedding={"provider": "openai", "model_name": "e"})
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="SOME_KEY"):
        language_model(chosen)
    monkeypatch.setenv("SOME_KEY", SECRET)
    model, encoder = language_model(chosen), encoder_of(chosen)
    assert (model.model, model.api_key_env) == ("openai/gpt-4o-mini", "SOME_KEY")
    assert isinstance(encoder, OpenAIEncoder)
    assert encoder.api_key_env == "SOME_KEY"
    assert SECRET not in f"{model!r} {encoder!r} {chosen!r} {model.config} {encoder.config}"


def test_a_dimension_that_the_model_does_not_have_is_refused():
    check_encoder(settings(embedding={"dimension": 384}))
    with pytest.raises(ConfigurationError, match=r"embedding\.dimension is 1024, and the vectors of .*MiniLM.* have 384"):
        check_encoder(settings(embedding={"dimension": 1024}))
