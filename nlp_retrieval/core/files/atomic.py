"""Atomic writes: readers see all of a file or none, even after a crash. Write aside, sync, rename, sync the folder."""

from __future__ import annotations

import errno
import glob
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from uuid import uuid4

from nlp_retrieval.core.components.registry import numbered_names
from nlp_retrieval.errors import IndexWriteError, OutputError

_CURES = {
    errno.EACCES: "permission denied; choose a folder that you may write to",
    errno.EPERM: "not permitted; choose a folder that you may write to",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.ENOSPC: "the disk is full; free some space and run it again",
    errno.EDQUOT: "the disk quota is used up; free some space and run it again",
    errno.EFBIG: "the file would be larger than this process may write (ulimit -f); raise the limit and run it again",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another path",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n)",
}


@contextmanager
def explained_writes(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` that concerns the path inside the block into an :class:`IndexWriteError` with a cure.

    Examples:
        >>> with explained_writes(Path("index")):
        ...     write_atomically(Path("words.json"), b"[]")
    """
    try:
        yield
    except OSError as error:
        target, own = Path(str(error.filename or path)).absolute(), path.absolute()
        elsewhere = not (target.is_relative_to(own) or own.is_relative_to(target))  # a file that an engine could not read
        if isinstance(error, IndexWriteError) or error.errno is None or elsewhere:
            raise
        raise IndexWriteError(f"cannot write to {target}: {_reason(error)}. What was there before is unchanged.") from error


def sync(path: Path) -> None:
    """Make the content of a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make everything in a folder durable, but not the folder's own name in its parent."""
    for path in folder.rglob("*"):
        if not path.is_symlink() and (path.is_dir() or path.is_file()):
            sync(path)
    sync(folder)


def publish_folder(scratch: Path, target: Path) -> None:
    """Make the content of a scratch folder durable, then give it its final name, which must be free."""
    sync_tree(scratch)
    scratch.rename(target)
    sync(target.parent)


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, and make their names durable."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        with suppress(PermissionError):  # a folder may be writable and not readable
            sync(folder.parent)


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace a file by ``content``: a reader sees the old one or the new one; without ``durable``, a power failure may cut it.

    Examples:
        >>> write_atomically(Path("manifest.json"), b"{}")
    """
    aside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    if durable:
        try:
            sync(path.parent)
        except OSError as error:
            message = f"{path} was replaced, but the disk does not confirm it ({error.strerror}); run it again"
            raise IndexWriteError(message) from error


def clear_asides(path: Path, seconds: float = 3600.0) -> None:
    """Remove what killed writers left next to a file, unless it is young: then a process may be writing it now.

    Examples:
        >>> clear_asides(Path("manifest.json"))
    """
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > seconds:
                leftover.unlink()


def check_folder_for_output(folder: Path) -> None:
    """Raise an :class:`OutputError` if a folder is not writable; the check leaves nothing behind.

    Examples:
        >>> check_folder_for_output(Path("results"))
    """
    with _explained_output(folder):
        whole = folder.absolute()
        with suppress(FileNotFoundError):
            (whole / "file").lstat()  # names that are too long, or that no folder can have
        existing = next(path for path in (whole, *whole.parents) if os.path.lexists(path))
        with TemporaryFile(dir=existing):  # permissions say nothing about a read-only disk, or about /proc
            pass


def check_file_for_output(path: Path) -> None:
    """Raise an :class:`OutputError` if a file cannot be written, before work that takes long."""
    _refuse_device(path)
    check_folder_for_output(path.parent)


def _refuse_device(path: Path) -> None:
    with _explained_output(path):
        if path.exists() and not path.is_file():
            raise FileExistsError(errno.EEXIST, "it exists and is not a file")


def write_output(path: Path, content: bytes) -> None:
    """Replace a file by ``content``, and create its folder if it is missing; :class:`OutputError` if that is impossible.

    Examples:
        >>> write_output(Path("results/table.md"), b"| a |")
    """
    _refuse_device(path)
    with _explained_output(path):
        make_folder(path.parent)
        clear_asides(path)
        write_atomically(path, content)


def remove_output(path: Path) -> None:
    """Remove a file if it exists, durably: it must not remain next to newer files, even after a crash.

    Examples:
        >>> remove_output(Path("out.json"))
    """
    with _explained_output(path), suppress(FileNotFoundError):
        path.unlink()
        sync(path.parent)


@contextmanager
def _explained_output(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise OutputError(f"{path} cannot be written: {_reason(error)}") from error


def _reason(error: OSError | ValueError) -> str:
    """What the operating system says, with a cure."""
    reason = f"{getattr(error, 'strerror', None) or error}; choose another path"
    return _CURES.get(getattr(error, "errno", None) or 0, reason)


_LONGEST = 200


def file_names(names: Iterable[str]) -> list[str]:
    """The names of configurations as file names; those that become equal get a number, also if they differ only in case.

    Examples:
        >>> file_names(["bm25 + faiss", "k1=0.9/b=0.4"])
        ['bm25___faiss', 'k1_0.9_b_0.4']
    """
    stems = (re.sub(r"[^\w.-]", "_", name).lstrip(".").encode()[:_LONGEST].decode(errors="ignore") for name in names)
    return numbered_names(stem or "_" for stem in stems)
