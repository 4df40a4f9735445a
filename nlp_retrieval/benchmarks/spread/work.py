"""What workers are asked to do of a sweep, and how a worker does it: stages, into the store that all of them share.

A stage travels as plain values: components as their configuration, which the registry makes them of, and the key under which
the result has to lie. A worker that comes to another key has other data or another model, and does not compute.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.benchmarks.stages.keys import (
    CANDIDATES,
    candidates_key,
    corpus_of,
    hardware,
    pairs_key,
    scores_group,
    versions,
)
from nlp_retrieval.benchmarks.stages.shared import SharedStages
from nlp_retrieval.benchmarks.stages.store import StageStore
from nlp_retrieval.core.blocks.encoded import digest_of
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.components.registry import build_as
from nlp_retrieval.core.index.generation import Generation, open_generation
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.core.search.stages import using_stages
from nlp_retrieval.encoders.workers.worker import Confirmed
from nlp_retrieval.errors import IndexMissingError, RetrievalError, RetrievalWarning, WorkerError, first_line

__all__ = ["StageBlock", "StageTask", "StagesDone"]


@dataclass(frozen=True)
class StageBlock:
    """Stages that one worker computes, one after another.

    Args:
        number: of the block.
        name: for messages: ``candidates of faiss``.
        stages: each as plain values: its ``component``, what that is asked, and the ``group`` and ``key`` of the result.
    """

    number: int
    name: str
    stages: Sequence[Config]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def work(self) -> str:
        """What a worker is sent."""
        return json.dumps(self.stages)

    def fits(self, answer: object) -> bool:
        """Whether what came back was made of these stages."""
        return isinstance(answer, StagesDone) and answer.work == digest_of([self.work])


@dataclass(frozen=True)
class StagesDone:
    """What became of a block.

    Args:
        work: digest of what the worker had been sent.
        undone: by the place of a stage in the block, why its result is not in the store.
    """

    work: bytes
    undone: Mapping[int, str]


@dataclass(frozen=True)
class StageTask:
    """Computes stages of a sweep over one corpus.

    Args:
        index: path of the index directory.
        stages: path of the store.
        token: name of a file in the store, by which a worker knows that it is the same folder.
        corpus: fingerprint of the items of the index.
    """

    index: str
    stages: str
    token: str
    corpus: str

    def __str__(self) -> str:
        return f"the index at {self.index}"

    @property
    def key(self) -> str:
        """The same for tasks that do the same."""
        return canonical_json(asdict(self))

    def require_sendable(self) -> None:
        """Nothing but plain values is sent."""

    def facts(self) -> dict[str, str]:
        """What must be the same where stages are computed; processors of two kinds may differ in the last bit."""
        known = {f"version of {name}": str(version) for name, version in versions().items()}
        return known | {"processor": str(hardware()["cpu"]), "index, by the fingerprint of its items": self.corpus}

    def elsewhere(self) -> StageWork:
        """This task in the process that it was sent to."""
        return StageWork(self)


class StageWork:
    """Computes stages, inside of a worker.

    Args:
        task: what it was sent.
    """

    def __init__(self, task: StageTask) -> None:
        self._task = task
        self._store = StageStore(task.stages)

    @cached_property
    def _generation(self) -> Generation:
        return open_generation(self._task.index)

    def confirmed(self, place: str) -> Confirmed:
        """Look whether index and store are those of the process that asks.

        Raises:
            WorkerError: one of them is not seen here.
        """
        task = self._task
        cure = "put the index and the output of the benchmark on a file system that all nodes have at the same path"
        if not (Path(task.stages) / task.token).exists():
            raise WorkerError(f"{place} does not see the results of stages that this process keeps in {task.stages}; {cure}")
        try:
            found = corpus_of(self._generation)
        except IndexMissingError:
            raise WorkerError(f"{place} sees no index at {task.index}; {cure}") from None
        return Confirmed(place, StageTask(task.index, task.stages, task.token, found).facts())

    def done(self, work: object) -> StagesDone:
        """Compute the stages of a block; one that raises does not keep the next from it."""
        undone: dict[int, str] = {}
        stages = SharedStages(self._store, beside=True)
        for place, stage in enumerate(json.loads(str(work))):
            try:
                with using_stages(stages), warnings.catch_warnings():
                    warnings.simplefilter("ignore", RetrievalWarning)  # who reads the result is warned
                    self._compute(stage, stages)
            except Exception as error:  # the process that asks does it by itself, and tells
                said = str(error) if isinstance(error, RetrievalError) else f"{type(error).__name__}: {first_line(error)}"
                undone[place] = said
        return StagesDone(digest_of([str(work)]), undone)

    def _compute(self, stage: Config, stages: SharedStages) -> None:
        if stage["group"] == CANDIDATES:
            self._search(stage, stages)
        else:
            self._score(stage, stages)
        if not self._store.has(stage["group"], stage["key"]):
            raise WorkerError(f"its result is not in {self._store.folder}: it was not written")

    def _search(self, stage: Config, stages: SharedStages) -> None:
        generation = self._generation
        retriever = stages.opened(build_as(BaseRetriever, "retrievers", stage["component"]), generation)
        asked = stage["queries"], stage["depth"], generation
        allowed = generation.items.mask(stage["where"])
        _require_key(stage, candidates_key(retriever, *asked, allowed))
        stages.candidates(retriever, *asked, stage["label"], allowed)

    def _score(self, stage: Config, stages: SharedStages) -> None:
        reranker = build_as(BaseReranker, "rerankers", stage["component"])
        queries = [stage["queries"][number] for number in stage["query"]]
        rows = np.array(stage["rows"], np.int64)
        _require_key(stage, scores_group(reranker, self._generation), pairs_key(queries, rows))
        stages.score(reranker, queries, rows, self._generation)


def _require_key(stage: Config, *found: Any) -> None:
    if found != ((stage["key"],) if stage["group"] == CANDIDATES else (stage["group"], stage["key"])):
        raise WorkerError(f"the index or a model of {stage['component']['name']} is another one there")
