"""Files of a folder that are sources, and reading their bytes safely.

A folder is read to any depth, in the order of its names. Skipped, and counted in a warning, are symbolic links (they lead out
of the folder, or to files that are read anyway), devices, pipes and sockets, and unsupported files. Files and folders whose
name begins with a dot are skipped without a warning.
"""

from __future__ import annotations

import errno
import os
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.systems.evidence.reading.limits import LARGEST_FILE
from nlp_retrieval.systems.evidence.reading.text_of import SUFFIXES
from nlp_retrieval.text import printable

__all__ = ["LeftOut", "files_in", "is_json_lines", "read_file"]

_JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


class LeftOut:
    """Files and texts that were skipped, by reason, for one warning each."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self._counts: list[str] = []
        self.details: list[str] = []
        """Texts that were omitted from sources, a line each."""

    def detail(self, where: str, why: str, text: str) -> None:
        """Note a text that was omitted from a source.

        Args:
            where: the source.
            why: it was omitted; empty if the reason is the same as before.
            text: that was omitted.
        """
        self.details.append(f"{where}: {why}{': ' if why and text else ''}{printable(text)}")

    def counted(self, what: str) -> None:
        """Note something skipped that is only counted."""
        self._counts.append(what)

    def lines(self) -> list[str]:
        """Return everything that was skipped, a line each."""
        return [f"{reason}: {one}" for reason, found in self._found.items() for one in found] + self.details

    def add(self, reason: str, first: str) -> None:
        """Count one.

        Args:
            reason: what they have in common: "[reason]: 2 (first: ...)".
            first: description of this case; only that of the first is used.
        """
        self._found.setdefault(reason, []).append(first)

    def warn(self) -> None:
        """Warn of the number for each reason, and the first case."""
        for what in self._counts:
            warnings.warn(f"left out: {what}", RetrievalWarning, stacklevel=3)
        for reason, found in self._found.items():
            warnings.warn(f"{reason}: {len(found):,} (first: {found[0]})", RetrievalWarning, stacklevel=3)


def is_json_lines(path: Path) -> bool:
    """Return whether a file holds one source per line, by its name."""
    return path.name.lower().endswith(_JSON_LINES)


def files_in(folder: Path, left_out: LeftOut) -> Iterator[Path]:
    """Yield the files of a folder that can be sources.

    Args:
        folder: read to any depth.
        left_out: collects what is skipped.
    """

    def unreadable(error: OSError) -> None:
        left_out.add("folders left out, since they cannot be opened", f"{printable(str(error.filename))}: {error.strerror}")

    for here, folders, names in os.walk(folder, onerror=unreadable, followlinks=False):
        for name in [name for name in folders if (Path(here) / name).is_symlink()]:
            left_out.add("symbolic links left out", printable(str(Path(here) / name)))
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not (Path(here) / name).is_symlink())
        for name in sorted(names):
            path = Path(here) / name
            if name.startswith("."):
                continue
            if path.is_symlink():
                left_out.add("symbolic links left out", printable(str(path)))
            elif not path.is_file():
                left_out.add("devices, pipes and sockets left out", printable(str(path)))
            elif is_json_lines(path) or path.suffix.lower() in SUFFIXES:
                yield path
            else:
                left_out.add("files of kinds that are not read left out", printable(str(path)))


def read_file(path: Path, follow_link: bool) -> bytes:
    """Return the bytes of a file.

    Args:
        path: of the file.
        follow_link: whether it may be a symbolic link.

    Raises:
        SourceError: it is not a file, cannot be read, or is larger than ``LARGEST_FILE``.
    """
    shown = printable(str(path))
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe without a writer would wait for ever
    try:
        descriptor = os.open(path, flags if follow_link else flags | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise SourceError(f"{shown}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        reason = "it is a symbolic link" if getattr(error, "errno", None) == errno.ELOOP else str(error)
        raise SourceError(f"{shown}: cannot be opened ({reason}); make it a file that this user may read") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SourceError(f"{shown}: neither a file nor a folder; a device, a pipe or a socket is not read")
        try:
            data = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise SourceError(f"{shown}: reading failed ({error.strerror}); check the disk") from error
    if len(data) > LARGEST_FILE:
        raise SourceError(f"{shown}: larger than {LARGEST_FILE >> 20} MiB; split it up")
    return data
