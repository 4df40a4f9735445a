"""A model that is made of another: kept in the cache, and copied into a folder."""

from __future__ import annotations

from pathlib import Path

from hashed_words import HashedWords, items_of

from crash.operation import Operation, State
from nlp_retrieval.encoders import distill_static

_TEXTS = ["the red fox", "a blue whale and a red whale", "the green tree"]


def _nothing(world: Path) -> None:
    del world


def _distill(world: Path) -> None:
    if not (world / "words" / "config.json").exists():
        distill_static(HashedWords(), items_of(_TEXTS), world / "words")


def _files(world: Path) -> State:
    folder = world / "words"
    return {file.name: file.read_bytes().hex() for file in folder.glob("[!.]*")} if folder.exists() else {}


def _scratch(world: Path) -> list[str]:
    kept = world / "cache" / "nlp-retrieval" / "models" / "static"
    left = [*kept.glob(".*"), *(world / "words").glob(".*")]
    return sorted(path.name for path in left if path.suffix != ".lock")


def model_operations() -> list[Operation]:
    """Static embeddings distilled into a folder: each file is whole, and the one that makes it a model comes last."""

    def some_whole(found: State, old: State, new: State) -> bool:
        return found.items() <= new.items() and "config.json" not in found

    return [Operation("distil", _nothing, _distill, _files, _scratch, between=some_whole)]
