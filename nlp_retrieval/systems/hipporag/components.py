"""The components that settings of HippoRAG 2 stand for."""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval import HttpEncoder, LanguageModel, OpenAIEncoder, SentenceTransformerEncoder
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.systems.hipporag.engine.retriever import HippoRagRetriever
from nlp_retrieval.systems.hipporag.settings import DEFAULT_FOLDER, EmbeddingSection, HippoRagSettings, key_variable

__all__ = ["check_encoder", "checked_encoder", "index_folder", "knowledge_place", "language_model", "retriever"]

_ANY_TEXT = "dimension"
_PROVIDERS = {"openai": "openai", "vllm": "hosted_vllm", "ollama": "ollama_chat", "openai-compatible": "openai"}


def knowledge_place(settings: HippoRagSettings) -> str:
    """Where the knowledge is, as ``KnowledgeStore`` takes it: a file, a database URL or ``env:NAME``."""
    storage = settings.storage
    return storage.database if storage.is_database else str(_folder(storage.save_dir, "save_dir") / "knowledge.db")


def index_folder(settings: HippoRagSettings) -> Path:
    """Where the index is."""
    storage = settings.storage
    if storage.index_dir is not None:
        return _folder(storage.index_dir, "index_dir")
    return _folder(DEFAULT_FOLDER if storage.is_database else storage.save_dir, "save_dir") / "index"


def _folder(path: str, key: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"storage.{key} {path!r}: {error}") from None


def language_model(settings: HippoRagSettings, *, extracting: bool = False) -> LanguageModel:
    """Build the language model.

    Args:
        settings: whose.
        extracting: whether it reads a corpus: longer answers, and more patience.

    Raises:
        ConfigurationError: the key's variable is not set.
    """
    llm, indexing = settings.llm, settings.indexing
    return LanguageModel(
        f"{_PROVIDERS[llm.provider]}/{llm.model_name}",
        llm.base_url,
        key_variable(llm.api_key),
        llm.temperature,
        llm.max_tokens or (2048 if extracting else 512),
        timeout=120.0 if extracting else 60.0,
        retries=indexing.retry_attempts,
        backoff=indexing.retry_backoff_base,
    )


def _encoder(settings: HippoRagSettings) -> BaseEncoder:
    chosen: EmbeddingSection = settings.embedding
    own = key_variable(chosen.api_key)
    if chosen.provider == "openai":
        key = own or key_variable(settings.llm.api_key)
        return OpenAIEncoder(chosen.model_name, chosen.dimension, key, batch_size=chosen.batch_size)
    if chosen.provider == "custom":
        return HttpEncoder(chosen.base_url or "", chosen.model_name, own, chosen.dimension, batch_size=chosen.batch_size)
    return SentenceTransformerEncoder(
        chosen.model_name, batch_size=chosen.batch_size, trust_remote_code=chosen.trust_remote_code
    )


def checked_encoder(settings: HippoRagSettings) -> BaseEncoder:
    """Build the encoder, whose vectors have the dimension that the settings say, if they say one.

    Those behind an endpoint are held to it when their first vectors come.

    Raises:
        ConfigurationError: the model has vectors of another dimension, or the key's variable is not set.
        ModelError: the model cannot be loaded.
    """
    encoder, wanted = _encoder(settings), settings.embedding.dimension
    if wanted is not None and isinstance(encoder, SentenceTransformerEncoder):
        found = encoder.encode_passages([_ANY_TEXT]).shape[1]
        if found != wanted:
            raise ConfigurationError(
                f"embedding.dimension is {wanted}, and the vectors of {settings.embedding.model_name} have {found}; "
                f"write {found}, or null to take what the model has"
            )
    return encoder


def check_encoder(settings: HippoRagSettings) -> None:
    """Encode one text, before anything is paid.

    Raises:
        ConfigurationError: the vectors have another dimension than the settings say, or the key's variable is not set.
        DependencyError: a package is missing.
        ModelError: the model cannot be loaded, or its endpoint gives no vector.
    """
    try:
        checked_encoder(settings).encode_passages([_ANY_TEXT])
    except ModelError as error:
        if "trust_remote_code" not in str(error) or settings.embedding.trust_remote_code:
            raise
        raise ModelError(
            f"{settings.embedding.model_name} needs Python code that comes with the model: if you trust who made it, write "
            f"embedding.trust_remote_code: true ({error})"
        ) from error


def retriever(settings: HippoRagSettings, knowledge: str) -> HippoRagRetriever:
    """Build the retriever.

    Args:
        settings: of encoder and search.
        knowledge: its source; see :class:`HippoRagRetriever`.

    Raises:
        ConfigurationError: the encoder's dimension is another, or a key's variable is not set.
    """
    chosen = settings.retrieval
    return HippoRagRetriever(
        checked_encoder(settings),
        knowledge,
        linking=chosen.linking,
        triple_k=chosen.query_entity_top_k,
        hops=chosen.graph_expansion_hops,
        damping=0.5 if chosen.enable_ppr else 0.0,
    )
