"""Writing result files: atomically, with errors that name the file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from nlp_retrieval.core.files.atomic import clear_asides, make_folder, sync_folder, write_atomically
from nlp_retrieval.errors import OutputError

_LONGEST = 200
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


def check_folder_for_output(folder: Path) -> None:
    """Raise an error if a folder is not writable; it is not created, and the check leaves nothing behind, even after a crash.

    Raises:
        OutputError: it is a file or inside one, is not writable, or its file system does not accept files.
    """
    try:
        whole = folder.absolute()
        place = next(path for path in (whole, *whole.parents) if os.path.lexists(path))
        if not place.exists():
            reason = f"{place} is a link that leads nowhere"
        elif not place.is_dir():
            reason = f"{place} is a file"
        else:
            with suppress(FileNotFoundError):  # a name that no folder can have is another error
                os.lstat(whole / "file")
            with TemporaryFile(dir=place):  # permissions say nothing about a read-only disk, or about /proc
                return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise OutputError(f"{folder} cannot be written ({reason}); choose another path")


def check_file_for_output(path: Path) -> None:
    """Raise an error if a file cannot be written.

    Raises:
        OutputError: the path is not a file, or its folder is not writable.
    """
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
    """
    if path.exists() and not path.is_file():  # a device or a pipe would be replaced by a file
        raise OutputError(f"{path} cannot be written (it exists and is not a file); choose another path")
    try:
        make_folder(path.parent)
        clear_asides(path)
        write_atomically(path, content)
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}); choose another path or free some space") from error


def remove_output(path: Path) -> None:
    """Remove a file if it exists, durably, so that it does not remain next to newer files, even after a crash.

    Raises:
        OutputError: it cannot be removed.
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
    """
    taken: set[str] = set()
    made = []
    for name in names:
        stem = candidate = re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"
        stem = candidate = candidate.encode()[:_LONGEST].decode(errors="ignore")
        if _RESERVED.fullmatch(stem):
            stem = candidate = f"_{stem}"
        number = 1
        while candidate.casefold() in taken:
            number += 1
            candidate = f"{stem}-{number}"
        taken.add(candidate.casefold())
        made.append(candidate)
    return made
