"""The settings of components that a manifest may decide, by kind, registry name and parameter.

What a parameter's value would do beyond that (read a file, load code, reach a server), its rule says as a phrase. How a
manifest is held to this: :mod:`nlp_retrieval.core.components.trust`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["MANIFEST_MAY_SET", "Rule"]

Rule = Callable[[Any], str | None]
"""Returns what a value would do that a manifest may not decide, as a phrase; None if nothing."""

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_DEVICE = re.compile(r"(cpu|cuda|mps)(:\d{1,3})?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REVISION = re.compile(r"[A-Za-z0-9](?:[\w-]|\.(?!\.)){0,127}", re.ASCII)


def _hub_name(model: Any) -> str | None:
    if not isinstance(model, str) or (_HUB_NAME.fullmatch(model) and ".." not in model):
        return None  # looked for only in the cache of this machine: see Component.local_only
    return f"read the model at {model!r}"


def _no_pipeline(pipeline: Any) -> str | None:
    return None if pipeline in (None, "rules") else f"load the spaCy pipeline {pipeline!r}, with the code that it names"


def _one_of(pattern: re.Pattern[str], what: str) -> Rule:
    def rule(value: Any) -> str | None:
        return None if value is None or (isinstance(value, str) and pattern.fullmatch(value)) else f"{what} {value!r}"

    return rule


def _given(what: str) -> Rule:
    return lambda value: None if value is None else f"{what} {value!r}"


def _knowledge(source: Any) -> str | None:
    """A digest names what the index holds; anything else would be opened."""
    held = source is None or (isinstance(source, str) and _DIGEST.fullmatch(source))
    return None if held else f"read {source!r}"


def _profile(profile: Any) -> str | None:
    """The name of one that comes with the package, or its content; a path would be read."""
    return f"read {profile!r}" if isinstance(profile, str) and not re.fullmatch(r"[a-z_]+", profile, re.ASCII) else None


def _code(trusted: Any) -> str | None:
    return None if trusted is False else "run the Python code that comes with the model"


def _robots(obeyed: Any) -> str | None:
    return None if obeyed is True else "fetch pages that their sites' robots.txt forbids"


def _may(*free: str, **ruled: Rule) -> dict[str, Rule]:
    """The parameters of a component that a manifest may set: those free to have any valid value, and those with a rule."""
    return dict.fromkeys(free, lambda _: None) | ruled


_MODEL: dict[str, Rule] = {
    "model": _hub_name,
    "device": _one_of(_DEVICE, "use the device"),
    "revision": _one_of(_REVISION, "read the revision"),
}
_ENCODER = _may("precision", "batch_size", "max_length", "query_prompt", "passage_prompt", **_MODEL, trust_remote_code=_code)
_CALLS = _may(
    *("max_characters", "calls_at_once", "calls_per_minute", "retries", "backoff", "timeout", "max_calls"),
    api_key_env=_given("send the key in the environment variable"),
)
_ENDPOINT = _CALLS | _may(
    *("dimension", "query_prompt", "passage_prompt", "normalize", "batch_size"), cache_dir=_given("keep vectors in")
)
_PARTS = _may("retrievers", "fusion", "reranker")
_FILE = _given("read")
_FIELDS = ("id_field", "content_field", "title_field", "metadata_fields")

MANIFEST_MAY_SET: Mapping[str, Mapping[str, Mapping[str, Rule]]] = {
    "retrievers": {
        "bm25s": _may(
            *("k1", "b", "language", "stemmer", "stopwords", "pattern", "accents", "segmenter"),
            *("feedback", "fb_docs", "fb_terms", "original_query_weight", "merge", "backend"),
        ),
        "pyserini": _may(
            *("k1", "b", "language", "stemmer", "keep_stopwords", "rm3", "rm3_terms", "rm3_documents", "rm3_query_weight"),
            *("document_vectors", "threads", "merge"),
        ),
        "faiss": _may(
            *("index_type", "hnsw_m", "ef_construction", "ef_search", "nlist", "nprobe", "pq_bytes", "train_size", "seed"),
            "merge",
            encoder=_hub_name,
        ),
        "pgvector": _may(
            *("index_type", "precision", "hnsw_m", "ef_construction", "build_memory", "ef_search", "schema"),
            *("statement_timeout", "connections", "merge"),
            encoder=_hub_name,
            url=_given("ask the database"),
        ),
        "milvus": _may(
            *("mode", "index_type", "hnsw_m", "ef_construction", "nlist", "ef_search", "nprobe", "analyzer", "k1", "b"),
            *("consistency", "timeout", "retries", "merge"),
            encoder=_hub_name,
            url=_given("ask the server"),
            token=_given("send the token in"),
        ),
        "postgres_text": _may(
            *("language", "schema", "statement_timeout", "connections", "merge"), url=_given("ask the database")
        ),
        "colbert": _may(
            *("bits", "centroids", "train_size", "seed", "nprobe", "rescored", "prune", "merge", "backend"), encoder=_hub_name
        ),
        "splade": _may("merge", "backend", encoder=_hub_name),
        "entity_sentences": _may(
            *("seeds", "rounds", "threshold", "max_passages", "entity_weight", "depth", "seed_power", "damping", "epsilon"),
            *("pool", "sentence_weight", "merge"),
            encoder=_hub_name,
            mentions=_no_pipeline,
        ),
        "hop": _may(
            *("start", "subject", "document", "position", "version", "version_order", "neighbours", "across", "min_similarity"),
            *("min_carried", "max_hops", "max_starts", "depth", "decay", "relation_weights", "hop_weight", "centrality_weight"),
            *("changes", "beside_weight", "newness_power", "merge", "relations"),
            encoder=_hub_name,
        ),
        "feedback": _may(
            *("seeds", "subject", "document", "position", "passages", "depth", "terms", "vector_weight", "term_weight"),
            *("neighbour_weight", "named_weight", "pool", "merge"),
        ),
        "hipporag": _may(
            *("linking", "triple_k", "entity_k", "lm", "passage_weight", "damping", "pagerank", "epsilon"),
            *("synonym_threshold", "hops", "merge"),
            encoder=_hub_name,
            knowledge=_knowledge,
            added_knowledge=_FILE,
        ),
        "link_graph": _may(
            *("seeds", "links", "depth", "seed_power", "title_weight", "damping", "pagerank", "epsilon", "pool", "weights"),
            "merge",
            encoder=_hub_name,
        ),
    },
    "links": {
        "entity_sentences": _may("max_passages", "weight", mentions=_no_pipeline),
        "hyperlinks": _may("links", "max_shared", "along", "against"),
        "same_parent": _may("parent", "window", "weight"),
        "shared_entities": _may("max_passages", "weight", mentions=_no_pipeline),
        "title_mentions": _may("aliases", "min_characters", "rarity", "max_shared", "context", "along", "against"),
        "shared_knowledge": _may("max_passages", "weight", knowledge=_knowledge),
    },
    "verifiers": {
        "language_model": _may("lm", "window", "most_characters", calibration=_FILE),
        "lexical": _may(calibration=_FILE),
        "pair_model": _MODEL
        | _may("labels", "backend", "precision", "window", "most_windows", "max_length", "batch_size")
        | _may(calibration=_FILE),
    },
    "search_engines": {
        "folder": _may(folder=_FILE),
        "searxng": _may(
            *("language", "categories", "engines", "safe_search", "seconds"),
            url=_given("send queries to the server"),
            user_agent=_given("name itself to servers"),
        ),
    },
    "fetchers": {
        "folder": _may(folder=_FILE),
        "http": _may(
            *("seconds", "max_bytes", "max_redirects"),
            private_hosts=_given("fetch pages from the private hosts"),
            ports=_given("fetch pages from the ports"),
            robots=_robots,
            user_agent=_given("name itself to servers"),
        ),
    },
    "answerers": {"language_model": _may("lm", "passages", "passage_characters")},
    "encoders": {
        "sentence-transformers": _ENCODER | _may("normalize", "backend"),
        "colbert": _ENCODER | _may("backend", "projection", "seed", "query_length"),
        "openai": _ENDPOINT | _may(model=_given("send texts to the embedding model")),
        "splade": _may("max_active_dims", "max_query_dims", "precision", "max_length", "batch_size", **_MODEL)
        | _may(trust_remote_code=_code),
        "static": {key: _MODEL[key] for key in ("model", "revision")},
        "word_vectors": _may("weighting", model=_FILE),
        "http": _ENDPOINT | _may("model", base_url=_given("send texts to the server")),
    },
    "fusions": {
        "raw": _may(),
        "rrf": _may("k", "weights"),
        "weighted_sum": _may("weights", "normalization"),
        "combsum": _may("normalization"),
        "combmnz": _may("normalization"),
    },
    "rerankers": {
        "overlap": _may("entity_weight", "proper_noun_weight", "phrase_weight", "blend", spacy_pipeline=_no_pipeline),
        "late_interaction": _may("encoder", "blend"),
        "http": _CALLS | _may("model", "documents_per_call", "blend", base_url=_given("send texts to the server")),
        "listwise": _may("lm", "window", "step", "depth", "passage_characters", "blend"),
        "mmr": _may("lambda_mult", "relevance", encoder=_hub_name),
        "multi_signal": _may(
            *("transformer_weight", "word_vectors_weight", "patterns_weight", "fuzzy_weight", "encoder", "word_vectors"),
            *("transformer_signal", "fuzzy_threshold", "min_similarity", "n_per_document", "document_field", "blend"),
            profile=_profile,
        ),
        "cross_encoder": _may("backend", "precision", "max_length", "batch_size", "blend", **_MODEL),
    },
    "processors": {
        "chain": _may("processors"),
        "clauses": _may("min_words", "max_clauses", "keep_query"),
        "entity_phrases": _may("max_phrases", "context", "keep_query", spacy_pipeline=_no_pipeline),
        "keyword_expansion": _may("keywords", "keep_query"),
        "claim_decomposition": _may("lm", "keep_query", "max_phrases", "max_words", program=_FILE),
        "hyde": _may("lm", "keep_query", "max_words", "form", program=_FILE),
    },
    "searchers": {
        "searcher": _PARTS | _may("processor", "scope", "depth", "quota"),
        "multi_hop": _PARTS | _may("lm", "hops", "per_hop", "passage_characters", "step", program=_FILE),
        "trec_run": _may(path=_FILE),
        "unfiltered": _PARTS | _may("processor", "scope", "depth", "quota"),
    },
    "loaders": {
        "beir": _may("split", path=_FILE),
        "hotpotqa": _may("sentence_facts", path=_FILE),
        "hover": _may("hops", "label", path=_FILE),
        "jsonl": _may(*_FIELDS, path=_FILE),
        "csv": _may(*_FIELDS, "number_fields", "decimal", "delimiter", "quote", "columns", "encoding", path=_FILE),
        "parquet": _may(*_FIELDS, path=_FILE),
        "huggingface": _may(*_FIELDS, "config", "split", "revision", path=_given("load, or download, the data set")),
        "ir_datasets": _may(
            *("content_field", "title_field", "metadata_fields", "query_field"),
            path=_given("load, or download, the data set"),
        ),
        "topics": _may(*("format", "qrels_format", "id_field", "text_field", "columns", "quote"), path=_FILE, qrels=_FILE),
        "chunker": _may("source", "size", "overlap", "unit"),
        "chunk_tables": _may("schema", "country", url=_given("ask the database")),
        "database": _may(
            *(*_FIELDS, "table", "parameters"),
            url=_given("ask the database"),
            query=_given("run the statement"),
        ),
    },
    "language_models": {
        "dspy": _may(
            *("temperature", "max_tokens", "calls_at_once", "retries", "backoff", "timeout", "max_calls", "give_up_after"),
            model=_given("send questions to the language model"),
            base_url=_given("send them to the server"),
            api_key_env=_given("send the key in the environment variable"),
            cache_dir=_given("keep answers in"),
        ),
    },
}
"""By kind, registry name and parameter. A component or a parameter that is not listed needs the user's trust."""
