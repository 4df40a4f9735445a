"""Fingerprints of the code of components of other packages; this one's have a ``format_version`` instead.

The text of a class's module is compared, as it was when the class was created; of a class in no file, its functions' code.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

_OWN_PACKAGE = __name__.partition(".")[0]
_checksums: WeakKeyDictionary[type, str] = WeakKeyDictionary()
"""For each class of others, the checksum of its module when it was created."""


def remember_source(cls: type) -> None:
    """Store the checksum of a class's module; to be called while the class is created."""
    if not is_own_module(cls.__module__):
        _checksums[cls] = _checksum(cls)


def code_of(cls: type) -> dict[str, str] | None:
    """Return class, package with its version, and checksum of the code of a class; None where all of it is this package's."""
    foreign = [base for base in cls.__mro__ if base in _checksums]
    if not foreign:
        return None
    told = "".join(f"{base.__module__}:{base.__qualname__}\0{_checksums[base]}\n" for base in foreign)
    code = {"class": f"{cls.__module__}:{cls.__qualname__}", "checksum": hashlib.sha256(told.encode()).hexdigest()}
    return code | _package(cls.__module__.partition(".")[0])


@cache
def _package(name: str) -> dict[str, str]:
    try:
        return {"package": f"{name} {version(name)}"}
    except PackageNotFoundError:
        return {}


@cache
def own_code() -> str:
    """Return the checksum of this package's own files."""
    folder = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def is_own_module(name: str) -> bool:
    """Return whether a module belongs to this package."""
    return name.partition(".")[0] == _OWN_PACKAGE


def _checksum(cls: type) -> str:
    codes = [code for value in vars(cls).values() for code in _codes_in(value)]
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is not None and Path(file).is_file() and (not codes or file in {code.co_filename for code in codes}):
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return hashlib.sha256(f"{sys.implementation.cache_tag}\0{_told(tuple(codes))}".encode()).hexdigest()


def _codes_in(value: Any) -> list[CodeType]:
    """The code of an attribute that is a function, and of the functions that it wraps."""
    inner = (getattr(value, name, None) for name in ("__wrapped__", "fget", "fset", "fdel"))
    own = [value.__code__] if isinstance(value, FunctionType) else []
    return own + [code for part in inner if part is not None for code in _codes_in(part)]


def _told(value: object) -> str:
    """Code, or one of its constants, as text; the order of a set is another in every process."""
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {_told(value.co_consts)}"
    if isinstance(value, tuple | frozenset):
        return str(list(map(_told, value)) if isinstance(value, tuple) else sorted(map(_told, value)))
    return repr(value)
