"""What tells the code of two components apart, where it is not this package's own.

What a component of this package writes is told by its ``format_version``; another package promises nothing, so its code is
looked at. Of a class that stands in a file it is the text of its module and of all that module imports from its own package,
as they were when the class was made; of a class made in a notebook or inside a function, what its functions are compiled to,
the functions, classes and constants they name, and the constants that they close over.

It cannot be seen what lists and mappings beside such a class hold (they may be counters), what is imported by names made at
run time, what other packages do (their versions are compared where results are kept), what a class reads from files or the
network, and what is changed in it after it was made.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

_OWN_PACKAGE = __name__.partition(".")[0]
_SHARED_FOLDERS = {Path(path) for path in sysconfig.get_paths().values()}
"""Where packages that have nothing to do with each other stand side by side."""

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_CONSTANT = (*_PLAIN, tuple, frozenset)
_CODE = (FunctionType, staticmethod, classmethod, property)
_sources: WeakKeyDictionary[type, str] = WeakKeyDictionary()
"""By class: the checksum of the files that it was made from, taken when it was made."""


def remember_source(cls: type) -> None:
    """Take the checksum of the files that a class is made from; to be called while it is made."""
    if not is_own(cls) and (file := _file_of(cls)) is not None:
        _sources[cls] = _checksum_of_files(file, cls.__module__)


def code_of(cls: type) -> dict[str, str] | None:
    """Return what tells the code of a class from that of others; None where all of it is this package's own.

    Returns:
        ``class`` (module and qualified name), ``package`` (and version, where a distribution of its name is installed) and
        ``checksum``.
    """
    foreign = [base for base in cls.__mro__ if not is_own(base) and not _is_standard(base)]
    if not foreign:
        return None
    digest = hashlib.sha256()
    for base in foreign:
        digest.update(f"{base.__module__}:{base.__qualname__}\0{_sources.get(base)}\n".encode())
        if base not in _sources or "<locals>" in base.__qualname__:
            digest.update(f"{sys.implementation.cache_tag}\0{_Compiled().of(base)}\n".encode())
    found = {"class": f"{cls.__module__}:{cls.__qualname__}", "checksum": digest.hexdigest()}
    package = _distribution_of(cls.__module__.partition(".")[0])
    return found if package is None else found | {"package": package}


@cache
def own_code() -> str:
    """Return the checksum of this package's own files."""
    folder = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{_sha256(file)}\n".encode())
    return digest.hexdigest()


def is_own(cls: type) -> bool:
    """Whether a class belongs to this package."""
    return is_own_module(cls.__module__)


def is_own_module(name: str) -> bool:
    """Whether a module belongs to this package."""
    return name.partition(".")[0] == _OWN_PACKAGE


def _is_standard(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in sys.stdlib_module_names and cls.__module__ != "__main__"


def _file_of(cls: type) -> Path | None:
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not Path(file).is_file():
        return None
    place = Path(file).absolute()
    functions = [inner for inner in vars(cls).values() if isinstance(inner, FunctionType)]
    written_in = {Path(function.__code__.co_filename).absolute() for function in functions}
    return None if written_in and place not in written_in else place  # a cell of a notebook, in a process that a file began


@cache
def _distribution_of(package: str) -> str | None:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None


def _checksum_of_files(file: Path, module: str) -> str:
    """The checksum of a module's file and of those that it imports from beside it, names included."""
    name = file.stem if module == "__main__" else module
    depth = len(name.split(".")) - (file.name != "__init__.py")
    root = file.parents[depth] if depth < len(file.parents) else file.parent
    reached = _reached(root, name, file)
    digest = hashlib.sha256()
    for place in sorted(reached):
        digest.update(f"{place.relative_to(root).as_posix()}\0{_sha256(place)}\n".encode())
    return digest.hexdigest()


def _reached(root: Path, name: str, file: Path) -> set[Path]:
    """A module's file, those of the packages around it, and those of the modules of its own package that they import."""
    pending, reached = [(name, file)], set[Path]()
    while pending:
        module, place = pending.pop()
        if place in reached:
            continue
        reached.add(place)
        package = module if place.name == "__init__.py" else module.rpartition(".")[0]
        for imported in (*_ancestors(module), *_imported(place, package)):
            if _belongs_to(imported, name, root):
                pending += [(imported, found) for found in _files(root, imported)]
    return reached


def _belongs_to(imported: str, module: str, root: Path) -> bool:
    return imported.partition(".")[0] == module.partition(".")[0] or root not in _SHARED_FOLDERS


def _ancestors(module: str) -> Iterator[str]:
    parts = module.split(".")
    for length in range(1, len(parts)):
        yield ".".join(parts[:length])


def _files(root: Path, module: str) -> Iterator[Path]:
    stem = root.joinpath(*module.split("."))
    candidates = [stem.with_name(stem.name + suffix) for suffix in (".py", *EXTENSION_SUFFIXES)]
    yield from (place for place in (stem / "__init__.py", *candidates) if place.is_file())


def _imported(file: Path, package: str) -> tuple[str, ...]:
    found = file.stat()
    return _parsed(file, package, found.st_mtime_ns, found.st_size) if file.suffix == ".py" else ()


@cache
def _parsed(file: Path, package: str, *state: int) -> tuple[str, ...]:
    """Full names of all that a file may import, wherever in it the statement stands."""
    del state
    names: list[str] = []
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError, OSError):
        return ()
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            around = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*around, *filter(None, [node.module])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(dict.fromkeys(name for full in names if full for name in (full, *_ancestors(full))))


def _sha256(file: Path) -> str:
    found = file.stat()
    return _read(file, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


@cache
def _read(file: Path, *state: int) -> str:
    del state
    return hashlib.sha256(file.read_bytes()).hexdigest()


class _Compiled:
    """The text of what functions and classes are compiled to, each once."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}  # held, so that no other object gets the id of one of them

    def of(self, value: Any) -> str:
        """Return a text that is another one where the code is."""
        if isinstance(value, _PLAIN):
            return repr(value)
        if id(value) in self._seen:
            return "seen"
        self._seen[id(value)] = value
        return self._inside(value)

    def _inside(self, value: Any) -> str:
        match value:
            case FunctionType():
                text = self._function(value)
            case CodeType():
                text = f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {self.of(value.co_consts)}"
            case staticmethod() | classmethod():
                text = self.of(value.__func__)
            case property():
                text = self.of((value.fget, value.fset, value.fdel))
            case type():
                text = self._class(value)
            case tuple():
                text = f"({', '.join(map(self.of, value))})"
            case frozenset():
                text = f"{{{', '.join(sorted(map(self.of, value)))}}}"
            case _:
                text = f"some {type(value).__module__}:{type(value).__qualname__}"
        return text

    def _class(self, cls: type) -> str:
        if is_own(cls) or _is_standard(cls):
            return f"{cls.__module__}:{cls.__qualname__}"
        # what Python itself keeps in a class changes as the class is used
        own = [f"{key}={self.of(inner)}" for key, inner in vars(cls).items() if isinstance(inner, _CODE) or key[:2] != "__"]
        return f"class {cls.__qualname__} {_text_of(cls)} {[self.of(base) for base in cls.__bases__]} {own}"

    def _function(self, function: FunctionType) -> str:
        told = [
            self.of(part) for part in (function.__code__, function.__defaults__, tuple((function.__kwdefaults__ or {}).items()))
        ]
        told += [self.of(cell.cell_contents) for cell in function.__closure__ or () if _filled(cell)]
        for name in sorted(_names_in(function.__code__)):
            value = function.__globals__.get(name)
            if isinstance(value, _CONSTANT) or getattr(value, "__module__", None) == function.__module__:
                told.append(f"{name}={self.of(value)}")
        return f"function {told}"


def _text_of(cls: type) -> str:
    """What was written, where that is known: a notebook keeps the text of its cells."""
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError, SyntaxError):  # the last: what was run stands in a file that is no Python
        return ""


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 -- an empty cell raises
    except ValueError:
        return False
    return True


def _names_in(code: CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names_in, inner))
