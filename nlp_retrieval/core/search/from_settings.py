"""Creating a searcher from plain values: from a configuration, or from the contents of an index.

A configuration belongs to the user and may use any setting; the manifest of an index may come from anyone and is restricted by
:mod:`nlp_retrieval.core.components.trust`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, overload

from nlp_retrieval.core.components.component import Component, Config, refuse_secrets
from nlp_retrieval.core.components.registry import build_as
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.core.search.known_retrievers import retrievers_of
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import ConfigurationError, SourceError, nearest

SearcherT = TypeVar("SearcherT", bound="FromSettings")
SearcherT_co = TypeVar("SearcherT_co", covariant=True)


class _OpensOfClass(Protocol[SearcherT_co]):
    def __call__(
        self, path: str | Path, *, retrievers: Iterable[Any] | None = None, trust: bool = False, **settings: Any
    ) -> SearcherT_co: ...


class _Open:
    """``open``, of a class and of a searcher: ``Searcher.open(path)``, ``searcher.open(path)``."""

    @overload
    def __get__(self, searcher: None, cls: type[SearcherT]) -> _OpensOfClass[SearcherT]: ...
    @overload
    def __get__(self, searcher: SearcherT, cls: type[SearcherT]) -> Callable[[str | Path], SearcherT]: ...
    def __get__(self, searcher: Any, cls: Any) -> Any:
        return cls._open_of_index if searcher is None else searcher._open


class FromSettings(Component):
    """Ways to create any searcher."""

    open: ClassVar[_Open] = _Open()
    """``searcher.open(path)`` opens an index; ``Searcher.open(path)`` creates a searcher from its retrievers."""

    @abstractmethod
    def _open(self, path: str | Path) -> Self:
        """Open an index."""

    @classmethod
    def _open_of_index(
        cls, path: str | Path, *, retrievers: Iterable[Any] | None = None, trust: bool = False, **settings: Any
    ) -> Self:
        """Create a searcher from the retrievers in an index, and open the index.

        Args:
            path: the index directory.
            retrievers: those to search with; by default all in the index, without those that are only parts of others.
            trust: let the index use settings that a manifest is not allowed; see :mod:`nlp_retrieval.core.components.trust`.
            **settings: further arguments of the class, such as ``fusion="rrf"`` or ``reranker="overlap"``.

        Raises:
            IndexMissingError: there is no index, or it lacks one of the retrievers.
            IndexDamagedError: a file does not match its checksum.
            UntrustedError: a retriever asks for more than a manifest is allowed.
            ConfigurationError: a setting cannot be used, or a retriever cannot be created from the manifest.
        """
        found: Iterable[BaseRetriever | str] = retrievers_of(path, trust=trust) if retrievers is None else retrievers
        return cls(retrievers=found, **settings)._open(path)  # type: ignore[call-arg]  # all searchers have retrievers

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | str | PathLike[str], searcher: str | None = None) -> Self:
        """Create a searcher from its settings, in the form of a benchmark's configuration.

        Args:
            config: the settings, or a YAML or JSON file of them: ``{retrievers: [bm25, faiss], fusion: rrf}``. If it has
                ``searchers`` by name, like a benchmark's file, one of these is created.
            searcher: its name there; optional if there is only one.

        Raises:
            SourceError: the file does not exist or cannot be read.
            ConfigurationError: an unknown name or parameter, a missing one, or a value of the wrong type or out of range.
        """
        settings, where = (config, "config") if isinstance(config, Mapping) else (_read(Path(config)), str(config))
        by_name = settings.get("searchers")
        if isinstance(by_name, Mapping):
            name = searcher if searcher is not None else next(iter(by_name)) if len(by_name) == 1 else None
            if name not in by_name:
                named = "which one?" if searcher is None else f"no searcher {searcher!r};"
                raise ConfigurationError(f"{where} has {len(by_name)} searchers: {named} {nearest(str(name or ''), by_name)}")
            settings, where = by_name[name], f"{where}: searchers.{name}"
        elif searcher is not None:
            raise ConfigurationError(f"{where} holds one searcher, without a name; leave out searcher={searcher!r}")
        if not isinstance(settings, Mapping):
            raise ConfigurationError(f"{where}: expected settings such as {{retrievers: [bm25]}}, found {settings!r}")
        return build_as(cls, "searchers", {"name": cls.name} | dict(settings), where)

    def to_config(self) -> Config:
        """Return all settings as plain values, for YAML or JSON; :meth:`from_config` creates an equal searcher from them.

        Raises:
            ConfigurationError: one of them is a secret, which must not be written to a file.
        """
        refuse_secrets(self, "written into a configuration")
        return self.config


def _read(file: Path) -> Config:
    """The settings in a file; JSON is read as JSON, because YAML reads ``1e-06`` as text."""
    if file.suffix != ".json":
        return read_yaml(file)
    try:
        content = read_json_file(file)
    except (OSError, ValueError) as error:
        raise SourceError(f"{file} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise ConfigurationError(f"{file} holds {type(content).__name__}, not a mapping of settings")
    return content
