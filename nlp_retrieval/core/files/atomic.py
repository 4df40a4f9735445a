"""Atomic writes: readers see all of a file or none, even after a crash. Write aside, sync, rename, sync the folder."""

from __future__ import annotations

import errno
import glob
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from tempfile import TemporaryFile
from uuid import uuid4

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
    errno.EEXIST: "there is already a file of that name; choose another path",
}

READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of the operating system where writing is not allowed."""


class UnconfirmedError(OSError):
    """A file was replaced, but the disk does not confirm its new name."""


@contextmanager
def explained_writes(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` inside the block into an :class:`IndexWriteError` that suggests a fix.

    Args:
        path: the directory being written; the message names it if the operating system names no file.

    Examples:
        >>> with explained_writes(Path("index")):
        ...     write_atomically(Path("words.json"), b"[]")
    """
    try:
        yield
    except IndexWriteError:
        raise
    except UnconfirmedError as error:
        raise IndexWriteError(
            f"{error.filename} was replaced, but the disk does not confirm it ({error.strerror}): after a power failure the "
            "one before may be back. Check the disk, and run it again."
        ) from error
    except OSError as error:
        if error.errno is None:
            raise
        target = error.filename or path
        if isinstance(target, str) and not _is_nested(Path(target).absolute(), path.absolute()):
            raise  # not this directory: an engine could not read one of its own files
        reason = _CURES.get(error.errno, os.strerror(error.errno))
        raise IndexWriteError(f"cannot write to {target}: {reason}. What was there before is unchanged.") from error


def _is_nested(path: Path, other: Path) -> bool:
    return path.is_relative_to(other) or other.is_relative_to(path)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make everything in a folder durable, but not the folder's own name in its parent."""
    for path in folder.rglob("*"):
        if not path.is_symlink() and path.is_dir():
            sync_folder(path)
        elif not path.is_symlink() and path.is_file():
            sync_file(path)
    sync_folder(folder)


def make_folder(path: Path) -> list[Path]:
    """Create a folder and its missing parents, and make their names durable; return those that were missing.

    Otherwise a crash may remove a folder that was just created, including durable content.

    Examples:
        >>> make_folder(Path("a/b"))
        [PosixPath('a/b'), PosixPath('a')]
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        with suppress(PermissionError):  # a folder may be writable and not readable
            sync_folder(folder.parent)
    return missing


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file by ``content``: a reader sees the old file or the new one, never a part, also after a crash.

    Raises:
        UnconfirmedError: the new file is there, but a power failure may lose it.
        OSError: it cannot be written; what was there before is unchanged.

    Examples:
        >>> write_atomically(Path("manifest.json"), b"{}")
        >>> Path("manifest.json").read_bytes()
        b'{}'
    """
    with _replacing(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        sync_folder(path.parent)
    except OSError as error:
        raise UnconfirmedError(error.errno, error.strerror, str(path)) from error


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file as :func:`write_atomically` does, without waiting for the disk.

    After a power failure it may be truncated or empty: for files that are checked when read, and can be written again.

    Examples:
        >>> replace_file(Path("cache.json"), b"{}")
    """
    with _replacing(path) as file:
        file.write(content)


@contextmanager
def _replacing(path: Path) -> Iterator[BufferedWriter]:
    aside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with aside.open("wb") as file:
            yield file
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def clear_asides(path: Path, seconds: float = 3600.0) -> None:
    """Remove temporary files that killed writers left next to a file.

    Args:
        path: the file.
        seconds: least age of such a file; a younger one may belong to a process that is writing now.

    Examples:
        >>> clear_asides(Path("manifest.json"))
    """
    with suppress(OSError):  # a folder that may not be read
        for leftover in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}"):
            with suppress(OSError):
                if time.time() - leftover.stat().st_mtime > seconds:
                    leftover.unlink()


def publish_folder(scratch: Path, target: Path) -> None:
    """Make the content of a scratch folder durable, then give it its final name, which must be free."""
    for file in scratch.iterdir():
        sync_file(file)
    sync_folder(scratch)
    scratch.rename(target)
    sync_folder(target.parent)


# Writing result files: atomically, with errors that name the file.


_LONGEST = 200


def check_folder_for_output(folder: Path) -> None:
    """Raise an error if a folder is not writable; it is not created, and the check leaves nothing behind, even after a crash.

    Raises:
        OutputError: it is a file or inside one, is not writable, or its file system does not accept files.

    Examples:
        >>> check_folder_for_output(Path("results"))
    """
    try:
        whole = folder.absolute()
        existing = next(path for path in (whole, *whole.parents) if os.path.lexists(path))
        if not existing.exists():
            reason = f"{existing} is a link that leads nowhere"
        elif not existing.is_dir():
            reason = f"{existing} is a file"
        else:
            with suppress(FileNotFoundError):  # a name that no folder can have is another error
                os.lstat(whole / "file")
            with TemporaryFile(dir=existing):  # permissions say nothing about a read-only disk, or about /proc
                return
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.EMFILE:
            raise OutputError(f"{folder} cannot be written: {_CURES[errno.EMFILE]}") from error
        reason = getattr(error, "strerror", None) or str(error)
    raise OutputError(f"{folder} cannot be written ({reason}); choose another path")


def check_file_for_output(path: Path) -> None:
    """Raise an OutputError if a file cannot be written."""
    try:
        in_the_way = os.path.lexists(path) and not path.is_file()
    except (OSError, ValueError) as error:
        raise OutputError(f"{str(path)!r} cannot be written ({getattr(error, 'strerror', None) or error})") from None
    if in_the_way:
        raise OutputError(f"{path} cannot be written (it exists and is not a file); choose another path")
    check_folder_for_output(path.parent)


def write_output(path: Path, content: bytes) -> None:
    """Replace a file by ``content``; its folder is created if it is missing.

    Raises:
        OutputError: the folder or the file cannot be written, or the disk does not confirm it.

    Examples:
        >>> write_output(Path("results/table.md"), b"| a |")
        >>> Path("results/table.md").read_bytes()
        b'| a |'
    """
    if path.exists() and not path.is_file():  # a device or a pipe would be replaced by a file
        raise OutputError(f"{path} cannot be written (it exists and is not a file); choose another path")
    try:
        make_folder(path.parent)
        clear_asides(path)
        write_atomically(path, content)
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise OutputError(f"{path} cannot be written: {_CURES[errno.EMFILE]}") from error
        raise OutputError(f"{path} cannot be written ({error.strerror}); choose another path or free some space") from error


def remove_output(path: Path) -> None:
    """Remove a file if it exists, durably, so that it does not remain next to newer files, even after a crash.

    Raises:
        OutputError: it cannot be removed.

    Examples:
        >>> write_output(Path("out.json"), b"{}")
        >>> remove_output(Path("out.json"))
        >>> Path("out.json").exists()
        False
    """
    try:
        path.unlink()
        sync_folder(path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise OutputError(f"{path} cannot be removed ({error.strerror}); choose another path") from error


def file_names(names: Iterable[str]) -> list[str]:
    """The names of configurations as file names: characters other than letters, digits, ``.``, ``_`` and ``-`` become ``_``.

    Names that become equal get a number, also if they differ only in case.

    Examples:
        >>> file_names(["bm25 + faiss", "k1=0.9/b=0.4"])
        ['bm25___faiss', 'k1_0.9_b_0.4']
    """
    used: set[str] = set()
    created = []
    for name in names:
        stem = candidate = re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"
        stem = candidate = candidate.encode()[:_LONGEST].decode(errors="ignore")
        number = 1
        while candidate.casefold() in used:
            number += 1
            candidate = f"{stem}-{number}"
        used.add(candidate.casefold())
        created.append(candidate)
    return created
