"""Configurations of a sweep as tasks of workers: processes of this machine, or a Ray cluster.

A task searches for all queries with one configuration, and leaves the stages in the folder of the run. The process that asked
then searches as always and finds them there; it measures latency itself, and computes what a worker could not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.benchmarks.filters import filters_for, search_each
from nlp_retrieval.benchmarks.shared_stages import SharedStages
from nlp_retrieval.benchmarks.stage_store import StageStore, corpus_of
from nlp_retrieval.core.components.component import Config, with_held
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.core.search.retriever import using_stages
from nlp_retrieval.encoders.passages import names_gpu, pool_at_hand
from nlp_retrieval.errors import IndexMissingError, RetrievalError, first_line
from nlp_retrieval.retrievers.servers.retriever import ServerRetriever


@dataclass(frozen=True)
class ConfigurationTask:
    """Searches with configurations, in a worker."""

    index: str
    stages: str
    k: int

    def facts(self) -> dict[str, str]:
        """Return what must be equal wherever stages are computed; processors of two kinds may differ in the last bit."""
        described = describe_environment()
        try:
            corpus = corpus_of(open_generation(self.index))
        except IndexMissingError:
            corpus = "none"
        facts = {"versions": str(described["versions"]), "processor": str(described["hardware"]["cpu"])}
        return facts | {f"index at {self.index}": corpus}

    def do(self, work: tuple[Config, list[str], list[Where | None]]) -> str:
        """Search with one configuration, and return why it could not be done; empty if it was."""
        config, texts, filters = work
        try:
            searcher: Any = build("searchers", config)
            searcher.open(self.index)
            with using_stages(SharedStages(StageStore(self.stages))):
                search_each(searcher, texts, self.k, filters)
        except Exception as error:  # the process that asked does it itself, and reports the error
            return str(error) if isinstance(error, RetrievalError) else f"{type(error).__name__}: {first_line(error)}"
        return ""


def search_elsewhere(
    searchers: Mapping[str, Any],
    task: ConfigurationTask,
    texts: Sequence[str],
    filters: Sequence[Where | None],
    say: Callable[[str], None],
) -> dict[str, str]:
    """Let workers search with configurations, and return, by name, why others are left to this process."""
    here = {name: why_here(searcher) for name, searcher in searchers.items()}
    sent = [name for name, reason in here.items() if not reason]
    if sent and (pool := pool_at_hand()) is not None:
        say(f"workers search: {', '.join(sent)}")
        works = [(searchers[name].config, list(texts), filters_for(searchers[name], filters)) for name in sent]
        here |= {name: reason for name, (_, reason) in zip(sent, pool.results(task, works), strict=True)}
    for name, reason in here.items():
        if reason:
            say(f"{name}: searched by this process: {reason}")
    return {name: reason for name, reason in here.items() if reason}


def why_here(searcher: object) -> str:
    """Return why only this process can search with a configuration; empty if another one can create an equal searcher."""
    if not isinstance(searcher, BaseSearcher):
        return "it is not a registered searcher"
    parts = list(with_held(searcher))
    asks = searcher.calls_per_query() != 0 or not all(getattr(part, "in_workers", True) for part in parts)
    if asks or any(isinstance(part, ServerRetriever) for part in parts):
        return "it asks a server or a language model"
    if names_gpu(searcher):
        return "it names a GPU, which workers do not have"
    try:
        rebuilt = build("searchers", searcher.to_config())
    except RetrievalError as error:
        return first_line(error)
    same = rebuilt == searcher and list(map(type, with_held(rebuilt))) == list(map(type, parts))
    return "" if same else "the registry creates another component from its configuration"
