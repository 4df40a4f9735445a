"""Settings of HippoRAG 2, from a YAML file: every key known, every number in its range.

An API key is given as ``${NAME}``, the environment variable that holds it, which is read when the key is sent; a literal key is
refused, and appears in no message.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from nlp_retrieval.core import Config, read_yaml
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.loaders import hide_secrets

DEFAULT_FOLDER = "./outputs/hipporag2"

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

ModelName = Annotated[str, Field(pattern=r"^\S+$", max_length=500)]
BatchSize = Annotated[int, Field(gt=0, le=1000)]
TopK = Annotated[int, Field(gt=0, le=1000)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, protected_namespaces=())


def key_variable(key: str | None) -> str | None:
    """Return the name of the variable in ``${NAME}``; None for None."""
    if key is None:
        return None
    match = _VARIABLE.fullmatch(key)
    if match is None:
        raise ValueError("write api_key as ${NAME}, the environment variable that holds it (its value is not shown)")
    return match[1]


def _needs(section: LanguageModelSection | EmbeddingSection, key: str, why: str) -> None:
    if not getattr(section, key):
        raise ValueError(f"provider {section.provider} needs {key}: {why}")


class LanguageModelSection(_Section):
    """``llm``: the language model. ``max_tokens`` is by default 2,048 for extraction and 512 for answers."""

    provider: Literal["openai", "vllm", "ollama", "openai-compatible"] = "openai"
    model_name: ModelName = "gpt-4o-mini"
    api_key: str | None = None
    base_url: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = 0.0
    max_tokens: Annotated[int, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        key_variable(self.api_key)
        if self.provider == "openai":
            _needs(self, "api_key", "write ${OPENAI_API_KEY}")
        if self.provider in ("vllm", "openai-compatible"):
            _needs(self, "base_url", "the URL of its server, such as http://localhost:8000/v1")
        return self


class EmbeddingSection(_Section):
    """``embedding``: the encoder. ``dimension`` is compared with the model's; null uses the model's own."""

    provider: Literal["sentence_transformers", "openai", "custom"] = "sentence_transformers"
    model_name: ModelName = "sentence-transformers/all-MiniLM-L6-v2"
    dimension: Annotated[int, Field(gt=0, le=100_000)] | None = None
    batch_size: BatchSize = 32
    api_key: str | None = None
    base_url: str | None = None
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        key_variable(self.api_key)
        if self.provider == "custom":
            _needs(self, "base_url", "the URL that /embeddings is added to, such as http://localhost:8000/v1")
        return self


class RetrievalSection(_Section):
    """``retrieval``: the search for passages."""

    query_entity_top_k: TopK = 5
    graph_expansion_hops: Annotated[int, Field(ge=1, le=2)] = 2
    passage_top_k: TopK = 20
    enable_ppr: bool = True
    linking: Literal["triples", "entities"] = "triples"
    filter_facts: bool = False
    extract_query_entities: bool = False

    @property
    def asks_model(self) -> bool:
        """Return whether the language model is called to link a query."""
        return self.filter_facts if self.linking == "triples" else self.extract_query_entities


class IndexingSection(_Section):
    """``indexing``: the extraction from passages by the language model."""

    batch_size: BatchSize = 100
    enable_checkpointing: bool = True
    retry_attempts: Annotated[int, Field(ge=0, le=100)] = 3
    retry_backoff_base: Annotated[float, Field(ge=0, le=60, strict=False)] = 2.0


class StorageSection(_Section):
    """``storage``: the locations of the knowledge and the index."""

    save_dir: Annotated[str, Field(min_length=1, max_length=4000)] = DEFAULT_FOLDER
    index_dir: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    iris_namespace: Annotated[str, Field(pattern=r"^%?[A-Za-z][A-Za-z0-9_-]{0,254}$")] | None = None

    @model_validator(mode="after")
    def _places(self) -> Self:
        if not self.is_database and ("\0" in self.save_dir or "?" in self.save_dir):
            raise ValueError("save_dir is a folder, without a question mark in its name, or a database URL")
        if hide_secrets(self.save_dir) != self.save_dir and self.is_database:
            raise ValueError(
                "save_dir is a URL with a password; write ${NAME}, the environment variable that holds the URL (the value "
                "is not shown)"
            )
        if self.index_dir is not None and (_is_url(self.index_dir) or "\0" in self.index_dir):
            raise ValueError("index_dir is a folder; only knowledge is kept in a database")
        named = self._iris[1] if self._iris else ""
        if named and self.iris_namespace not in (None, named):
            raise ValueError(f"save_dir names the namespace {named}, and iris_namespace {self.iris_namespace}; keep one")
        return self

    @property
    def is_database(self) -> bool:
        """Return whether knowledge is in a database, not in a file of a folder."""
        return _is_url(self.save_dir)

    @property
    def database(self) -> str:
        """Return the database for ``KnowledgeStore``: a URL, or ``env:NAME``."""
        variable = _VARIABLE.fullmatch(self.save_dir)
        if variable is not None:
            return f"env:{variable[1]}"
        if self._iris is not None and not self._iris[1] and self.iris_namespace is not None:
            return f"{self._iris[0]}/{self.iris_namespace}{self._iris[2]}"
        return self.save_dir

    @property
    def _iris(self) -> tuple[str, str, str] | None:
        """Return a URL of InterSystems IRIS in three parts: before the namespace, the namespace, and after it."""
        parts = re.fullmatch(r"(iris(?:\+\w+)?://[^/?]*)/?([^/?]*)(.*)", self.save_dir, re.DOTALL)
        return None if parts is None else (parts[1], parts[2], parts[3])


def _is_url(location: str) -> bool:
    return "://" in location or location.startswith("env:") or _VARIABLE.fullmatch(location) is not None


class EvaluationSection(_Section):
    """``evaluation``: the questions."""

    hotpotqa_dataset_path: str | None = None


class NameSection(_Section):
    """``pipeline``: the name of the system."""

    name: Literal["hipporag2"] = "hipporag2"


class HippoRagSettings(_Section):
    """Settings of :class:`HippoRagPipeline`, by the sections of its YAML file (docs/HIPPORAG.md has all keys).

    Examples:
        >>> settings = HippoRagSettings.read("hipporag.yaml")
        >>> settings.llm.model_name, settings.retrieval.passage_top_k
        ('gpt-4o-mini', 20)
    """

    pipeline: NameSection = NameSection()
    llm: LanguageModelSection
    embedding: EmbeddingSection = EmbeddingSection()
    retrieval: RetrievalSection = RetrievalSection()
    indexing: IndexingSection = IndexingSection()
    storage: StorageSection = StorageSection()
    evaluation: EvaluationSection = EvaluationSection()

    @model_validator(mode="after")
    def _keys(self) -> Self:
        if self.embedding.provider == "openai" and not (self.embedding.api_key or self.llm.api_key):
            raise ValueError("embedding: provider openai needs api_key: write ${OPENAI_API_KEY}")
        return self

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a YAML file.

        Raises:
            SourceError: it cannot be read.
            ConfigurationError: it is not YAML; or a key is unknown or missing, or a value is invalid.
        """
        return cls.of(read_yaml(path), str(path))

    @classmethod
    def of(cls, settings: Config, where: str = "settings") -> Self:
        """Return settings from the content of a file.

        Raises:
            ConfigurationError: a key is unknown or missing, or a value is invalid.
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            unknown = [problem for problem in errors if problem["type"] == "extra_forbidden"]
            raise ConfigurationError("; ".join(_in_words(where, problem) for problem in (unknown or errors)[:5])) from None

    def with_filter(self, on: bool | None) -> Self:
        """Return the same settings with facts filtered or not; None changes nothing."""
        if on is None:
            return self
        return self.model_copy(update={"retrieval": self.retrieval.model_copy(update={"filter_facts": on})})

    def unused(self) -> list[str]:
        """Return the given settings without effect, a sentence each."""
        reasons = {
            "storage.iris_namespace is not used: save_dir is not a URL of InterSystems IRIS, such as iris://user@host:1972": (
                self.storage.iris_namespace is not None and self.storage._iris is None
            ),
            "indexing.enable_checkpointing: false has no effect: results are always committed": (
                not self.indexing.enable_checkpointing
            ),
            "retrieval.graph_expansion_hops has an effect only with linking: entities; other walks have no limit": (
                "graph_expansion_hops" in self.retrieval.model_fields_set and self.retrieval.linking != "entities"
            ),
        }
        return [message for message, holds in reasons.items() if holds]


def _in_words(where: str, error: ErrorDetails) -> str:
    """Return one of pydantic's errors in words, with the valid values and without the given one."""
    path = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{where}: {path!r} missing; valid keys: {', '.join(HippoRagSettings.model_fields)}"
    if error["type"] == "model_type":
        return f"{where}: {path} is {type(error['input']).__name__}; write its settings below it"
    if error["type"] == "extra_forbidden":
        *section, key = map(str, error["loc"])
        kind = HippoRagSettings.model_fields[section[0]].annotation if section else HippoRagSettings
        fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}
        return f"{': '.join([where, *section])}: unknown key {key!r}; {nearest(key, fields)}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {path}: {message}" if path else f"{where}: {message}"
