"""Fingerprints of models: a model is opened only if its files still have the checksum that identified it.

Every file in a model's folder counts, whatever its suffix, also behind links, except those that only describe the model to
people. The fingerprint may be taken long before the model is opened; :meth:`ModelFiles.unchanged` makes sure that both see
the same files, by comparing them before and after they are read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from nlp_retrieval.core.files.checksums import is_settled, sha256_of, state_of
from nlp_retrieval.core.files.model_references import PASSED_OVER, code_elsewhere, named_in_graphs, require_inside
from nlp_retrieval.errors import ModelError

__all__ = ["ModelFiles"]

NOT_LOADED = frozenset({"readme.md", "license", "data_config.json", ".gitattributes", ".gitignore", ".ds_store"})
"""Names, in lower case, of files that no loader reads."""

_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf")
_MOST_FILES = 10_000


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model as they were when its fingerprint was taken.

    Args:
        folder: the folder that holds them.
        fingerprint: SHA-256 over their names and contents.
        trust_remote_code: whether code of other repositories that the model names is loaded with it and counts too.
    """

    folder: Path
    fingerprint: str
    trust_remote_code: bool = False

    @classmethod
    def of(cls, folder: Path, *, trust_remote_code: bool = False) -> ModelFiles:
        """Take the fingerprint of a model's files.

        Raises:
            ModelError: there is no such folder, it is empty, a file cannot be read, or the model refers to files outside it.
        """
        folder = folder.absolute()
        return cls(folder, _seen(folder, trust_remote_code).fingerprint, trust_remote_code)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Open the model inside this block, with exactly the files of the fingerprint.

        Raises:
            ModelError: the files changed since the fingerprint was taken, or while they were read.
        """
        before = self._seen_as_named()
        yield
        if self._seen_as_named() != before:
            raise self._changed()

    def _seen_as_named(self) -> _Seen:
        seen = _seen(self.folder, self.trust_remote_code)
        if seen.fingerprint != self.fingerprint:
            raise self._changed()
        return seen

    def _changed(self) -> ModelError:
        return ModelError(
            f"the files of the model in {self.folder} have changed since its fingerprint ({self.fingerprint[:12]}) was taken: "
            "plans and indexes made with it belong to other weights; put the files back, or create the component again and "
            "index with that"
        )


class _Seen(NamedTuple):
    fingerprint: str
    state: tuple[tuple[str | int, ...], ...]
    """For each file that counts: its name in the model, its path, and its status in the file system."""


def _seen(folder: Path, trust_remote_code: bool) -> _Seen:
    files = _listed(folder)
    if trust_remote_code:
        for repository, path in code_elsewhere(folder, files).items():
            files |= {f"{repository}--{name}": file for name, file in _listed(path).items() if name.endswith(".py")}
    statuses = {name: file.stat() for name, file in files.items()}
    state = tuple((name, str(files[name]), *state_of(status)) for name, status in statuses.items())
    return (_read if is_settled(*statuses.values()) else _read.__wrapped__)(folder, state)


@lru_cache(maxsize=64)
def _read(folder: Path, state: tuple[tuple[str | int, ...], ...]) -> _Seen:
    files = {str(name): Path(str(path)) for name, path, *_ in state}
    aside = {name for name in files if _is_aside(name)}
    aside -= named_in_graphs(files, aside)
    content = {name: file for name, file in files.items() if name not in aside}
    if not content:
        raise ModelError(f"there is no model in {folder}: the folder holds no files of one; pass the folder of a model")
    require_inside(folder, content)
    digest = hashlib.sha256()
    try:
        for name in sorted(content, key=lambda name: (str(PurePosixPath(name).parent).removeprefix("."), name)):
            digest.update(os.fsencode(name) + f"\0{sha256_of(content[name])}\n".encode())
    except OSError as error:
        raise _unreadable(error) from None
    return _Seen(digest.hexdigest(), tuple(entry for entry in state if entry[0] in content))


def _is_aside(name: str) -> bool:
    last = PurePosixPath(name).name.lower()
    return last in NOT_LOADED or last.endswith(_PICTURES)


def _listed(folder: Path) -> dict[str, Path]:
    """The regular files below a folder, also behind links, by their relative paths."""
    files: dict[str, Path] = {}
    try:
        if not folder.is_dir():
            raise ModelError(f"there is no model folder at {folder} (any more); check the path, or put the folder back")
        _list(folder, "", frozenset(), files)
    except OSError as error:
        raise _unreadable(error) from None
    return dict(sorted(files.items()))


def _list(folder: Path, prefix: str, within: frozenset[tuple[int, int]], files: dict[str, Path]) -> None:
    own = folder.stat()
    place = (own.st_dev, own.st_ino)
    if place in within:
        return  # a link back to a folder above it, whose files are listed already
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        name = prefix + entry.name
        if entry.is_dir():
            if entry.name not in PASSED_OVER:
                _list(Path(entry.path), f"{name}/", within | {place}, files)
        elif entry.is_file():
            files[name] = Path(entry.path)
        elif not entry.is_symlink():
            raise ModelError(f"{entry.path} is not a regular file, and cannot be part of a model; remove it")
        if len(files) > _MOST_FILES:
            raise ModelError(f"{folder} and what it links to hold more than {_MOST_FILES:,} files; pass a model's own folder")


def _unreadable(error: OSError) -> ModelError:
    return ModelError(f"{error.filename} is a file of a model and cannot be read ({error.strerror}); check the folder")
