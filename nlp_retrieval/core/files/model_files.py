"""Fingerprints of models: checksums of their files.

Every file in a model's folder counts, whatever its suffix, also behind links, except those that only describe the model to
people.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from nlp_retrieval.core.files.checksums import is_settled, sha256_of, state_of
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.errors import ModelError

__all__ = ["ModelFiles"]

# References in a model's settings, which may lead only to files in its own folder.
#
# Loaders take names of files, folders and other models from the settings of a model. Since these files determine the model's
# output, its fingerprint has to cover them, and a reference that leads elsewhere is refused. Code of another
# repository, if the user trusts it, is looked up and covered.

PASSED_OVER = frozenset({".git", ".cache", "__pycache__"})
"""Folders that are not part of a model."""

_SETTINGS = re.compile(r"(config(\..+)?|(tokenizer|sentence_.+|router|adapter)_config|modules|.+\.index)\.json")
_NAME_FILES = frozenset({"weight_map", "fast_tokenizer_files", "configuration_files", "transformers_weights"})
_NAME_FOLDERS = frozenset({"path", "types", "structure"})
_ARGUMENTS = frozenset({"model_args", "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs"})


def require_inside(folder: Path, files: Mapping[str, Path]) -> None:
    """Raise an error if a model's settings refer to files outside it.

    Args:
        folder: folder of the model.
        files: the files that count, by their relative paths.

    Raises:
        ModelError: a reference leads elsewhere, or settings are not JSON.
    """
    for name, settings in _settings(files):
        own = PurePosixPath(name).parent
        for keys, value in _strings(settings):
            if _NAME_FILES & set(keys):
                inside = not _is_other_file(folder, own, value, files)
            elif keys and keys[0] in _NAME_FOLDERS:
                inside = not PASSED_OVER & {part for text in (*keys, value) for part in re.split(r"[/\\]", text)}
            elif PurePosixPath(name).name.startswith("sentence_"):
                inside = _is_argument_inside(folder, own, keys, value, files)
            elif name.endswith("adapter_config.json") and keys == ("base_model_name_or_path",) and _is_loaded(name, files):
                raise ModelError(
                    f"{folder / name} is an adapter of another model, {value}, whose weights are not in this folder; merge "
                    "them (merge_and_unload() of peft), save the whole model, and pass its folder"
                )
            else:
                inside = True
            if not inside:
                raise _outside_model(folder / name, ".".join(keys), value)


def named_in_graphs(files: Mapping[str, Path], aside: Iterable[str]) -> set[str]:
    """Return the files that an ONNX graph of the model may read as data, because their names occur in it.

    Args:
        files: files of the model, by their relative paths.
        aside: names of files that otherwise do not count.

    Raises:
        ModelError: a graph names a folder that is not part of a model.
    """
    named: set[str] = set()
    for name, file in files.items():
        if not name.endswith(".onnx") or not file.stat().st_size:
            continue
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as graph:
            for passed_over in PASSED_OVER:
                if (file.parent / passed_over).exists() and graph.find(f"{passed_over}/".encode()) >= 0:
                    raise _outside_model(file, "", passed_over)
            named |= {name_aside for name_aside in aside if graph.find(os.fsencode(PurePosixPath(name_aside).name)) >= 0}
    return named


def code_elsewhere(folder: Path, files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the folders of the repositories whose code a model names, by the names of the repositories.

    Args:
        folder: folder of the model, for messages.
        files: files of the model, by their relative paths.

    Raises:
        ModelError: one of them is not on this machine.
    """
    folders: dict[str, Path] = {}
    for name, settings in _settings(files):
        for keys, value in _strings(settings):
            repository = _repository_of(value) if keys and ("auto_map" in keys or keys[-1] == "type") else ""
            if repository and repository not in folders:
                folders[repository] = _code_folder(repository, folder / name)
    return folders


def _repository_of(code: str) -> str:
    """The repository in ``organisation/name--module.Class``; empty if the code is the model's own."""
    repository, _, reference = code.rpartition("--")
    return repository if "." in reference and "/" not in reference else ""


def _code_folder(repository: str, named_in: Path) -> Path:
    if Path(repository).is_dir():
        return Path(repository).absolute()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError):
        raise ModelError(
            f"{named_in} names code of another repository, {repository}, which is not on this machine; read it, and where you "
            f"trust it: hf download {repository} --include '*.py'"
        ) from None


def _settings(files: Mapping[str, Path]) -> Iterator[tuple[str, Any]]:
    for name, file in files.items():
        if _SETTINGS.fullmatch(PurePosixPath(name).name):
            try:
                yield name, read_json_file(file)
            except (OSError, ValueError) as error:
                raise ModelError(f"{file} cannot be read as JSON ({error}); download the model again") from None


def _strings(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every string in settings, with the keys that lead to it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _strings(inner, (*keys, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, keys)
    elif isinstance(value, str):
        yield keys, value


def _is_other_file(folder: Path, own: PurePosixPath, value: str, files: Mapping[str, Path]) -> bool:
    """Return whether a name, relative to a folder in the model, leads to a file that does not count."""
    return str(own / value) not in files and (folder / own / value).is_file()


def _is_argument_inside(folder: Path, own: PurePosixPath, keys: tuple[str, ...], value: str, files: Mapping[str, Path]) -> bool:
    """Return whether an argument passed by sentence-transformers to other loaders refers to no file, or to one that counts."""
    if keys == ("tokenizer_name_or_path",) or keys[-1] == "code_revision":
        return False
    if not value or not _ARGUMENTS & set(keys[:1]) or str(own / value) in files:
        return True
    return not Path(value).exists() and not _is_other_file(folder, own, value, files)


def _is_loaded(name: str, files: Mapping[str, Path]) -> bool:
    """Return whether loaders apply an adapter by themselves: it is in a module's folder, not in one for model code."""
    where = PurePosixPath(name).parent
    return where.name == "" or str(where / "sentence_bert_config.json") in files


def _outside_model(file: Path, key: str, value: str) -> ModelError:
    at = f" at {key[:80]}" if key else ""
    return ModelError(
        f"{file} names {value[:80]!r}{at}, which is not part of the model: its fingerprint would not cover what is loaded; put "
        "the file into the model's folder, and name it there"
    )


NOT_LOADED = frozenset({"readme.md", "license", "data_config.json", ".gitattributes", ".gitignore", ".ds_store"})
"""Names, in lower case, of files that no loader reads."""

_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf")
_MOST_FILES = 10_000


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model at the time of its fingerprint.

    Args:
        folder: the folder that holds them.
        fingerprint: SHA-256 over their names and contents.
        trust_remote_code: whether code of other repositories that the model names is loaded with it and counts too.

    Examples:
        >>> Path("model").mkdir()
        >>> _ = Path("model/config.json").write_text("{}")
        >>> len(ModelFiles.of(Path("model")).fingerprint)
        64
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
    identity = (own.st_dev, own.st_ino)
    if identity in within:
        return  # a link back to a folder above it, whose files are listed already
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        name = prefix + entry.name
        if entry.is_dir():
            if entry.name not in PASSED_OVER:
                _list(Path(entry.path), f"{name}/", within | {identity}, files)
        elif entry.is_file():
            files[name] = Path(entry.path)
        elif not entry.is_symlink():
            raise ModelError(f"{entry.path} is not a regular file, and cannot be part of a model; remove it")
        if len(files) > _MOST_FILES:
            raise ModelError(f"{folder} and what it links to hold more than {_MOST_FILES:,} files; pass a model's own folder")


def _unreadable(error: OSError) -> ModelError:
    return ModelError(f"{error.filename} is a file of a model and cannot be read ({error.strerror}); check the folder")
