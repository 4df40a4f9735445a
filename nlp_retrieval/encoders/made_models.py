"""Models created on this machine from others, kept in the cache under the key that decides them.

A folder of the cache lists the files it must hold; one that is damaged, or that another user could have written to, is created
again. Two processes that need the same one create it once.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.files.atomic import publish_folder
from nlp_retrieval.core.files.cache import cache_folder, make_own, read_own
from nlp_retrieval.core.files.checksums import FileRecord, check_file, record_folder
from nlp_retrieval.errors import IndexDamagedError, ModelError

MADE_FILE = "made.json"
_WAIT = 3600.0


def kept_model(kind: str, identity: Config, write: Callable[[Path], None]) -> Path:
    """Return the folder of a model in the cache; create it if it is missing or incomplete.

    Args:
        kind: the folder of the cache that holds such models.
        identity: key of the model.
        write: writes its files, without subfolders, into the given empty folder.

    Raises:
        ModelError: the cache cannot be written.
    """
    key = hashlib.sha256(canonical_json(identity).encode()).hexdigest()
    above = cache_folder() / "models" / kind
    folder = above / key
    if _is_whole(folder, identity):
        return folder
    try:
        make_own(above)
        with FileLock(above / f".{key}.lock", timeout=_WAIT):
            if not _is_whole(folder, identity):
                _make_again(folder, identity, write)
    except (OSError, Timeout) as error:
        raise ModelError(
            f"a model cannot be kept in {above} ({error}); free some space there, or set XDG_CACHE_HOME to another folder"
        ) from error
    return folder


def _make_again(folder: Path, identity: Config, write: Callable[[Path], None]) -> None:
    scratch = folder.with_name(f".{folder.name}.{uuid4().hex[:8]}")
    for left in folder.parent.glob(f".{folder.name}.{'[0-9a-f]' * 8}"):  # left by a killed process, as the lock is ours
        shutil.rmtree(left, ignore_errors=True)
    try:
        scratch.mkdir(mode=0o700)
        write(scratch)
        files = {name: record.model_dump() for name, record in record_folder(scratch).items()}
        (scratch / MADE_FILE).write_text(json.dumps({"of": identity, "files": files}, indent=1), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        publish_folder(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _is_whole(folder: Path, identity: Config) -> bool:
    try:
        told = json.loads(read_own(folder / MADE_FILE))
        files = {str(name): FileRecord(**record) for name, record in told["files"].items()}
        there = {file.name for file in folder.iterdir()}
        if canonical_json(told["of"]) != canonical_json(identity) or there != {MADE_FILE, *files}:
            return False
        for name, record in files.items():
            check_file(folder / name, record)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, IndexDamagedError):
        return False
    return True
