"""Fingerprints of models: all files in a model's folder count, also behind links, except those that only describe it.

The settings of a model may lead its loaders only to its own files.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from nlp_retrieval.core.files.opening import read_json_file, sha256_of
from nlp_retrieval.errors import ModelError

_FOR_PEOPLE = frozenset({"readme.md", "license", "data_config.json", ".gitattributes", ".gitignore", ".ds_store"})
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf")
_NO_PART = frozenset({".git", ".cache", "__pycache__"})
"""Folders that are not part of a model."""
_MOST_FILES = 10_000
_TICK = 100_000_000
"""Nanoseconds within which two writes may get the same time of change."""

_SETTINGS = re.compile(r"(config(\..+)?|(tokenizer|sentence_.+|router|adapter)_config|modules|.+\.index)\.json")
_LEADING = frozenset(
    "weight_map fast_tokenizer_files configuration_files transformers_weights path types structure "
    "model_args model_kwargs tokenizer_args processor_kwargs config_args config_kwargs".split()
)
"""Settings by which loaders find files and folders."""


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model at the time of its fingerprint, a SHA-256; ``trust_remote_code`` says whether its code is run."""

    folder: Path
    fingerprint: str
    trust_remote_code: bool = False

    @classmethod
    def of(cls, folder: Path, *, trust_remote_code: bool = False) -> ModelFiles:
        """Take the fingerprint of a model's files."""
        folder = folder.absolute()
        try:
            statuses = {name: file.stat() for name, file in _listed(folder).items()}
            state = tuple(  # which every write changes: the time of change cannot be set back
                (name, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
                for name, stat in statuses.items()
            )
            changed = max((stat.st_ctime_ns for stat in statuses.values()), default=0)
            read = _fingerprint if changed < time.time_ns() - _TICK else _fingerprint.__wrapped__
            return cls(folder, read(folder, state), trust_remote_code)
        except OSError as error:
            raise ModelError(f"{error.filename} belongs to a model and cannot be read ({error.strerror}); check it") from None


@lru_cache(maxsize=64)
def _fingerprint(folder: Path, state: tuple[tuple[str | int, ...], ...]) -> str:
    names = [str(name) for name, *_ in state]
    if not any(name.endswith(".onnx") for name in names):  # a graph may read any file beside it as data
        names = [name for name in names if not _is_for_people(name)]
    if all(map(_is_for_people, names)):
        raise ModelError(f"there is no model in {folder}: the folder holds no files of one; pass the folder of a model")
    for name in names:
        if _SETTINGS.fullmatch(PurePosixPath(name).name):
            _require_inside(folder / name, folder)
    digest = hashlib.sha256()
    for name in sorted(names, key=lambda name: (str(PurePosixPath(name).parent).removeprefix("."), name)):
        digest.update(os.fsencode(name) + f"\0{sha256_of(folder / name)}\n".encode())
    return digest.hexdigest()


def _is_for_people(name: str) -> bool:
    last = PurePosixPath(name).name.lower()
    return last in _FOR_PEOPLE or last.endswith(_PICTURES)


def _listed(folder: Path) -> dict[str, Path]:
    """The files below a folder, also behind links, by their relative paths."""
    if not folder.is_dir():
        raise ModelError(f"there is no model folder at {folder} (any more); check the path, or put the folder back")

    def refuse(error: OSError) -> None:
        raise error

    files: dict[str, Path] = {}
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        here = Path(place).resolve()
        # a link back to a folder above it, whose files are listed already, is not followed
        folders[:] = sorted(name for name in {*folders} - _NO_PART if not here.is_relative_to((here / name).resolve()))
        paths = (Path(place, name) for name in names)
        files |= {file.relative_to(folder).as_posix(): file for file in paths if file.exists()}
        if len(files) > _MOST_FILES:
            raise ModelError(f"{folder} and what it links to hold more than {_MOST_FILES:,} files; pass a model's own folder")
    return dict(sorted(files.items()))


def _require_inside(file: Path, folder: Path) -> None:
    """Raise an error if a file of settings leads to anything that is not in the model's folder."""
    try:
        settings = read_json_file(file)
    except ValueError as error:
        raise ModelError(f"{file} cannot be read as JSON ({error}); download the model again") from None
    of_module = file.parent == folder or (file.parent / "sentence_bert_config.json").exists()  # others: for its own code
    for keys, value in _texts(settings):
        if file.name == "adapter_config.json" and keys == ("base_model_name_or_path",) and of_module:
            raise ModelError(
                f"{file} is an adapter of another model, {value}, whose weights are not in this folder; merge them "
                "(merge_and_unload() of peft), save the whole model, and pass its folder"
            )
        another = file.name.startswith("sentence_") and "tokenizer_name_or_path" in keys
        if another or (keys and keys[0] in _LEADING and any(map(_leads_out, (*keys, value)))):
            raise ModelError(
                f"{file} names {value[:80]!r} at {'.'.join(keys)[:80]}, which is not part of the model; put the file into "
                f"{folder}, and name it there"
            )


def _leads_out(path: str) -> bool:
    parts = re.split(r"[/\\]", path)
    return path.startswith(("/", "~")) or ".." in parts or not _NO_PART.isdisjoint(parts) or _is_for_people(path)


def _texts(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text in some settings, with the keys that lead to it."""
    inner = value.items() if isinstance(value, dict) else [("", part) for part in value] if isinstance(value, list) else []
    for key, part in inner:
        yield from _texts(part, (*keys, key) if key else keys)
    if isinstance(value, str):
        yield keys, value
