"""A study that asks countries one after another, killed between its files and inside of them."""

from __future__ import annotations

import warnings
from pathlib import Path

from crash.operation import Operation, State

from nlp_retrieval.errors import RetrievalWarning
from systems.policy.study.studies import answers_in, study


def _index(world: Path) -> None:
    study(world / "index")


def _asked_otherwise(world: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        study(world / "index").run(world / "out", top_k=1)


def _ask(world: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        study(world / "index").run(world / "out")


def _answers(world: Path) -> State:
    return answers_in(world / "out")


def _scratch(world: Path) -> list[str]:
    return sorted(path.name for path in (world / "out").rglob(".*"))


def study_operations() -> list[Operation]:
    """A study from nothing, and one over the answers of other settings: each file is the old one or the new one."""

    def each_file_whole(found: State, old: State, new: State) -> bool:
        return all(answers in (old.get(name), new.get(name)) for name, answers in found.items()) and set(old) <= set(found)

    return [
        Operation("study", _index, _ask, _answers, _scratch, between=each_file_whole),
        Operation("study over other settings", _asked_otherwise, _ask, _answers, _scratch, between=each_file_whole),
    ]
