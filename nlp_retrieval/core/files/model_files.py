"""Fingerprints of models, which identify the indexes and stages that are made with them.

Every file in a model's folder counts, whatever its suffix, also behind links, except those that only describe the model to
people. What its settings name elsewhere does not.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from nlp_retrieval.core.files.checksums import is_settled, sha256_of, state_of
from nlp_retrieval.errors import ModelError

__all__ = ["ModelFiles"]

_FOR_PEOPLE = frozenset({"readme.md", "license", "data_config.json", ".gitattributes", ".gitignore", ".ds_store"})
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf")
_NO_PART = frozenset({".git", ".cache", "__pycache__"})
"""Folders that are not part of a model."""
_MOST_FILES = 10_000


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model at the time of its fingerprint.

    Args:
        folder: the folder that holds them.
        fingerprint: SHA-256 over their names and contents.

    Raises:
        ModelError: there is no such folder, it is empty, or a file cannot be read.

    Examples:
        >>> Path("model").mkdir()
        >>> _ = Path("model/config.json").write_text("{}")
        >>> len(ModelFiles.of(Path("model")).fingerprint)
        64
    """

    folder: Path
    fingerprint: str

    @classmethod
    def of(cls, folder: Path) -> ModelFiles:
        """Take the fingerprint of a model's files."""
        folder = folder.absolute()
        try:
            files = _listed(folder)
            statuses = {name: file.stat() for name, file in files.items()}
            state = tuple((name, str(files[name]), *state_of(status)) for name, status in statuses.items())
            read = _fingerprint if is_settled(*statuses.values()) else _fingerprint.__wrapped__
            return cls(folder, read(folder, state))
        except OSError as error:
            raise ModelError(f"{error.filename} belongs to a model and cannot be read ({error.strerror}); check it") from None


@lru_cache(maxsize=64)
def _fingerprint(folder: Path, state: tuple[tuple[str | int, ...], ...]) -> str:
    files = {str(name): Path(str(path)) for name, path, *_ in state}
    if not any(name.endswith(".onnx") for name in files):  # a graph may read any file beside it as data
        files = {name: file for name, file in files.items() if not _is_for_people(name)}
    if all(map(_is_for_people, files)):
        raise ModelError(f"there is no model in {folder}: the folder holds no files of one; pass the folder of a model")
    digest = hashlib.sha256()
    for name in sorted(files, key=lambda name: (str(PurePosixPath(name).parent).removeprefix("."), name)):
        digest.update(os.fsencode(name) + f"\0{sha256_of(files[name])}\n".encode())
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
        found = (Path(place, name) for name in names)
        files |= {file.relative_to(folder).as_posix(): file for file in found if file.exists()}
        if len(files) > _MOST_FILES:
            raise ModelError(f"{folder} and what it links to hold more than {_MOST_FILES:,} files; pass a model's own folder")
    return dict(sorted(files.items()))
