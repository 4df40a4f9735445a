"""Study as a configuration file, with components by their registry names; or with the retrievers of an index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo

from nlp_retrieval import MultiSignalReranker, Searcher
from nlp_retrieval.core import BaseLoader, BaseRetriever, BaseSearcher, build, build_as, expanded, read_yaml, retrievers_of
from nlp_retrieval.errors import ConfigurationError, IndexMissingError, InputError, nearest
from nlp_retrieval.rerankers import Profile, load_profile
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader
from nlp_retrieval.systems.policy.study import PolicyStudy
from nlp_retrieval.systems.policy.vectors import with_word_vectors

_A_SEARCHER = "the settings of a searcher, such as {retrievers: [faiss], reranker: multi_signal}"
_HOP = "hop"
"""Registry name of the retriever that follows relations."""


def _profile(value: object) -> object:
    return load_profile(value) if isinstance(value, str) and value else value


def _path(value: object) -> object:
    return (expanded(value) if value else None) if isinstance(value, str) else value


def _loader(value: Any) -> object:
    return value if value is None or isinstance(value, BaseLoader) else build_as(BaseLoader, "loaders", value, "corpus")


def _searcher(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, Mapping):
        return value
    searcher = build("searchers", {"name": Searcher.name} | dict(value), str(info.field_name))
    if not isinstance(searcher, BaseSearcher):
        raise ConfigurationError(f"{info.field_name}: {searcher.name!r} is not a searcher over an index; a study needs one")
    return searcher


_Path = Annotated[Path, BeforeValidator(_path), Field(description="a path")]
_Searcher = Annotated[BaseSearcher, BeforeValidator(_searcher)]


class StudyConfig(BaseModel):
    """Content of a study's configuration file.

    Args:
        profile: the questions; a profile, its name, or its file.
        index: the index directory.
        searcher: for the method ``vector``.
        hop: for the method ``hop``; None: the study has none.
        corpus: from which a missing index is built; None: the index must exist.
        keywords: whether a question's keywords are added to the query.
        where: a further filter for all questions.
        output: the folder of the answers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    profile: Annotated[Profile, BeforeValidator(_profile), Field(description="the name of a profile, or its file")]
    index: _Path
    searcher: Annotated[_Searcher, Field(description=_A_SEARCHER)]
    hop: Annotated[_Searcher | None, Field(description=_A_SEARCHER)] = None
    corpus: Annotated[BaseLoader | None, BeforeValidator(_loader), Field(description="a loader")] = None
    keywords: Annotated[bool, Field(description="true or false")] = True
    where: Annotated[dict[str, Any] | None, Field(description="a filter such as {version: 2024}")] = None
    output: _Path = Path("answers")

    @classmethod
    def read(cls, path: str | Path) -> StudyConfig:
        """Read a file and build its components; nothing is loaded or indexed yet.

        Paths in it are relative to the working directory.

        Raises:
            SourceError: the file does not exist.
            ConfigurationError: an unknown key, name or parameter; a value of the wrong type or out of range.
        """
        try:
            return cls.model_validate(read_yaml(path))
        except ValidationError as error:
            raise _in_words(error, str(path)) from None

    def study(self, *, replace: bool = False) -> PolicyStudy:
        """Open the index, or build it from the corpus, and return the study.

        If the reranker of ``searcher`` was given no word vectors, they are trained on the passages, and kept in the index
        directory.

        Raises:
            IndexMissingError: there is no index, and no corpus to build it from.
            IndexConflictError: the directory holds other items than the corpus, which is not a database's, and ``replace`` is
                False.
        """
        for searcher in (self.searcher, self.hop):
            if searcher is None:
                continue
            if self.corpus is None:
                searcher.open(self.index)
            else:
                follows = replace or isinstance(self.corpus, ChunkTablesLoader)  # an index of tables is a copy of their texts
                searcher.index(self.corpus, self.index, replace=follows and searcher is self.searcher)
        return PolicyStudy(self.profile, with_word_vectors(self.searcher), self.hop, keywords=self.keywords, where=self.where)


def _in_words(error: ValidationError, file: str) -> InputError:
    """Return the first error of a file: the one that a component raised, or what is expected at the key."""
    first = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    key, fields = str(first["loc"][0]), StudyConfig.model_fields
    raised = first.get("ctx", {}).get("error")
    if isinstance(raised, InputError):
        return raised
    if key not in fields:
        return ConfigurationError(f"{file}: unknown key {key!r}; {nearest(key, fields)}")
    if first["type"] == "missing":
        return ConfigurationError(f"{file}: {key!r} missing; valid keys: {', '.join(fields)}")
    return ConfigurationError(f"{file}: {key}: expected {fields[key].description}, found {first['input']!r}")


def searchers_of(index: str | Path, profile: str, *, trust: bool = False) -> tuple[Searcher, Searcher | None]:
    """Return a searcher over the retrievers of an index, and one over those that follow relations, if any."""
    retrievers = retrievers_of(index, trust=trust)
    along = [_limited(retriever, profile) for retriever in retrievers if retriever.name == _HOP]
    plain = [retriever for retriever in retrievers if retriever.name != _HOP] or [part for hop in along for part in hop.parts()]
    if not plain:
        raise IndexMissingError(f"{index} has no retriever that starts from a query; index with --retriever faiss")
    reranker = MultiSignalReranker(profile, min_similarity=0.0)
    return Searcher(plain, reranker=reranker), Searcher(along) if along else None


def _limited(hop: BaseRetriever, profile: str) -> BaseRetriever:
    """Return a retriever that follows relations as far as the profile says."""
    chosen = load_profile(profile)
    return type(hop)(**hop._arguments | {"max_hops": chosen.max_hops}) if "max_hops" in chosen.model_fields_set else hop
