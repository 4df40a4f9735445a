"""Fingerprints of the code of components that do not belong to this package.

A component of this package changes its ``format_version`` when its index format changes; other packages make no such promise,
so the text of a class's module is compared, as it was when the class was created. Of a class that is in no file, as in a
notebook, it is the compiled code of its own functions. What the module imports is not covered, except for the version of its
package.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType, FunctionType
from weakref import WeakKeyDictionary

_OWN_PACKAGE = __name__.partition(".")[0]
_checksums: WeakKeyDictionary[type, str] = WeakKeyDictionary()
"""For each class of others, the checksum of its module when it was created."""


def remember_source(cls: type) -> None:
    """Store the checksum of a class's module; to be called while the class is created."""
    if not is_own(cls):
        _checksums[cls] = _checksum(cls)


def code_of(cls: type) -> dict[str, str] | None:
    """Return class, package with its version, and checksum of the code of a class; None where all of it is this package's."""
    foreign = [base for base in cls.__mro__ if base in _checksums]
    if not foreign:
        return None
    told = "".join(f"{base.__module__}:{base.__qualname__}\0{_checksums[base]}\n" for base in foreign)
    code = {"class": f"{cls.__module__}:{cls.__qualname__}", "checksum": hashlib.sha256(told.encode()).hexdigest()}
    package = _distribution_of(cls.__module__.partition(".")[0])
    return code if package is None else code | {"package": package}


@cache
def own_code() -> str:
    """Return the checksum of this package's own files."""
    folder = Path(__file__).parents[2]
    files = sorted(folder.rglob("*.py"))
    told = "".join(
        f"{file.relative_to(folder).as_posix()}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n" for file in files
    )
    return hashlib.sha256(told.encode()).hexdigest()


def is_own(cls: type) -> bool:
    """Return whether a class belongs to this package."""
    return is_own_module(cls.__module__)


def is_own_module(name: str) -> bool:
    """Return whether a module belongs to this package."""
    return name.partition(".")[0] == _OWN_PACKAGE


def _checksum(cls: type) -> str:
    functions = [function for value in vars(cls).values() for function in _functions_in(value)]
    written_in = {function.__code__.co_filename for function in functions}
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is not None and Path(file).is_file() and (file in written_in or not written_in):  # a decorator may be elsewhere
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    told = "\0".join(part for function in functions for part in _parts(function.__code__))
    return hashlib.sha256(f"{sys.implementation.cache_tag}\0{told}".encode()).hexdigest()


def _functions_in(value: object) -> list[FunctionType]:
    """The function of an attribute, with the one that it wraps; of a property, its three."""
    if isinstance(value, staticmethod | classmethod):
        return _functions_in(value.__func__)
    if isinstance(value, property):
        return [function for part in (value.fget, value.fset, value.fdel) for function in _functions_in(part)]
    wrapped = getattr(value, "__dict__", {}).get("__wrapped__")
    inner = [] if wrapped is None else _functions_in(wrapped)
    return [value, *inner] if isinstance(value, FunctionType) else inner


def _parts(code: CodeType) -> Iterator[str]:
    yield from (code.co_code.hex(), repr(code.co_names), repr(code.co_varnames))
    for constant in code.co_consts:
        yield from _parts(constant) if isinstance(constant, CodeType) else [_told(constant)]


def _told(constant: object) -> str:
    """A constant as text; the order of a set is another in every process."""
    if isinstance(constant, frozenset):
        return f"{{{', '.join(sorted(map(_told, constant)))}}}"
    return f"({', '.join(map(_told, constant))})" if isinstance(constant, tuple) else repr(constant)


@cache
def _distribution_of(package: str) -> str | None:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None
