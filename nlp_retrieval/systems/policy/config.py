"""Study as a configuration file, with components by their registry names; or with the retrievers of an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nlp_retrieval import MultiSignalReranker, Searcher
from nlp_retrieval.core import (
    BaseLoader,
    BaseRetriever,
    BaseSearcher,
    build,
    build_as,
    check_keys,
    read_yaml,
    retrievers_of,
    said_in_yaml,
)
from nlp_retrieval.errors import ConfigurationError, IndexMissingError
from nlp_retrieval.rerankers import Profile, load_profile
from nlp_retrieval.systems.policy.study import PolicyStudy

_KEYS = ("profile", "index", "corpus", "searcher", "hop", "keywords", "where", "output")
_REQUIRED = ("profile", "index", "searcher")


@dataclass(frozen=True)
class StudyConfig:
    """Content of a study's configuration file.

    Args:
        profile: the questions.
        index: the index directory.
        searcher: for the method ``vector``.
        hop: for the method ``hop``; None: the study has none.
        corpus: from which a missing index is built; None: the index must exist.
        keywords: whether a question's keywords are added to the query.
        where: a further filter for all questions.
        output: the folder of the answers.
    """

    profile: Profile
    index: Path
    searcher: BaseSearcher
    hop: BaseSearcher | None = None
    corpus: BaseLoader | None = None
    keywords: bool = True
    where: Mapping[str, Any] | None = None
    output: Path = Path("answers")

    @classmethod
    def read(cls, path: str | Path) -> StudyConfig:
        """Read a file and build its components; nothing is loaded or indexed yet.

        Paths in it are relative to the working directory.

        Raises:
            SourceError: the file does not exist.
            ConfigurationError: an unknown key, name or parameter; a value of the wrong type or out of range.
        """
        settings = read_yaml(path)
        where = str(path)
        check_keys(settings, _KEYS, _REQUIRED, where)
        keywords, extra = settings.get("keywords", True), settings.get("where")
        if not isinstance(keywords, bool):
            raise ConfigurationError(f"{where}: keywords: expected true or false, found {keywords!r}")
        if extra is not None and not isinstance(extra, dict):
            raise ConfigurationError(f"{where}: where: expected a filter such as {{version: 2024}}, found {extra!r}")
        corpus = settings.get("corpus")
        return cls(
            profile=load_profile(_text(settings["profile"], f"{where}: profile", "the name of a profile, or its file")),
            index=Path(_text(settings["index"], f"{where}: index", "a path")).expanduser(),
            searcher=_searcher(settings["searcher"], "searcher"),
            hop=_searcher(settings["hop"], "hop") if settings.get("hop") is not None else None,
            corpus=build_as(BaseLoader, "loaders", corpus, "corpus") if corpus is not None else None,
            keywords=keywords,
            where=extra,
            output=Path(_text(settings.get("output", "answers"), f"{where}: output", "a path")).expanduser(),
        )

    @said_in_yaml()
    def study(self, *, replace: bool = False) -> PolicyStudy:
        """Open the index, or build it from the corpus, and return the study.

        Args:
            replace: whether to replace an index of other items.

        Raises:
            IndexMissingError: there is no index, and no corpus to build it from.
            IndexConflictError: the directory holds other items than the corpus, and ``replace`` is False.
        """
        for searcher in (self.searcher, self.hop):
            if searcher is None:
                continue
            if self.corpus is None:
                searcher.open(self.index)
            else:
                searcher.index(self.corpus, self.index, replace=replace and searcher is self.searcher)
        return PolicyStudy(self.profile, self.searcher, self.hop, keywords=self.keywords, where=self.where)


def _text(value: Any, where: str, wanted: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{where}: expected {wanted}, found {value!r}")
    return value


def _searcher(fields: Any, where: str) -> BaseSearcher:
    if not isinstance(fields, Mapping):
        raise ConfigurationError(
            f"{where}: expected the settings of a searcher, such as {{retrievers: [faiss], reranker: multi_signal}}, "
            f"found {fields!r}"
        )
    made = build("searchers", {"name": Searcher.name} | dict(fields), where)
    if not isinstance(made, BaseSearcher):
        raise ConfigurationError(f"{where}: {made.name!r} searches in a way of its own; a study needs a searcher")
    return made


_HOP = "hop"
"""Registry name of the retriever that follows relations."""


def searchers_of(index: str | Path, profile: str, *, trust: bool = False) -> tuple[Searcher, Searcher | None]:
    """Return a searcher over the retrievers of an index, and one over those that follow relations, if any.

    Results of the first are scored by all signals of the profile; the study decides on the least score. Relations are followed
    as far as the profile says, else as far as the index says.

    Args:
        index: its directory.
        profile: the name of a profile, or its file.
        trust: whether the index may decide more than settings of a search.

    Raises:
        IndexMissingError: there is no index, or it has no retriever that finds passages by itself.
        UntrustedError: the index asks for more than it may decide.
    """
    found = retrievers_of(index, trust=trust)
    along = [_limited(one, profile) for one in found if one.name == _HOP]
    plain = [one for one in found if one.name != _HOP] or [part for one in along for part in one.parts()]
    if not plain:
        raise IndexMissingError(f"{index} has no retriever that finds passages by itself; index with --retriever faiss")
    reranker = MultiSignalReranker(profile, word_vectors_weight=0.0, min_similarity=0.0)
    return Searcher(plain, reranker=reranker), Searcher(along) if along else None


def _limited(hop: BaseRetriever, profile: str) -> BaseRetriever:
    """Return a retriever that follows relations as far as the profile says."""
    chosen = load_profile(profile)
    return type(hop)(**hop._arguments | {"max_hops": chosen.max_hops}) if "max_hops" in chosen.model_fields_set else hop
