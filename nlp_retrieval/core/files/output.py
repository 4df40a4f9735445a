"""Writing files of results: whole or not at all, and an error that names the file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from nlp_retrieval.core.files.atomic import clear_asides, make_folder, sync_folder, write_atomically
from nlp_retrieval.errors import OutputError

_LONGEST = 200
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


def check_folder_for_output(folder: Path) -> None:
    """Refuse a folder that nothing could be written into; it is not made yet.

    Raises:
        OutputError: it is a file or lies in one, or may not be written to.
    """
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise OutputError(f"{folder} cannot be written ({there} is a file); choose another path")
    if not os.access(there, os.W_OK | os.X_OK):
        raise OutputError(f"{folder} cannot be written ({there} may not be written to); choose another path")


def write_output(path: Path, content: bytes) -> None:
    """Replace a file by ``content``; its folder is made where it is missing.

    Raises:
        OutputError: the folder or the file cannot be written, or the disk does not confirm it.
    """
    if path.exists() and not path.is_file():  # a device or a pipe would be replaced by a file
        raise OutputError(f"{path} cannot be written (it is there, and is no file); choose another path")
    try:
        make_folder(path.parent)
        clear_asides(path)
        write_atomically(path, content)
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}); choose another path or free some space") from error


def remove_output(path: Path) -> None:
    """Remove a file, if it is there; what is written afterwards is not found beside it, also after a crash.

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
    """The names of configurations as file names: other characters than letters, digits, ``.``, ``_`` and ``-`` become ``_``.

    Names that become one get a number, also where they differ in case alone.
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
