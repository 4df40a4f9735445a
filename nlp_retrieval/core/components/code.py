"""Fingerprints of the code of components that do not belong to this package.

A component of this package changes its ``format_version`` when its index format changes; other packages make no such promise,
their code itself is compared. For a class defined in a file, that is the text of its module and of all that the module
imports from its own package, as they were when the class was created. For a class defined in a notebook or a function, it
is the compiled code of its functions, the functions, classes and constants that they name or close over.

Not covered are the contents of lists and mappings next to such a class (they may be counters), imports by names computed at run
time, the code of other packages (their versions are compared where results are stored), whatever a class reads from files or
the network, and changes to a class after its creation.
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
"""Folders that contain unrelated packages."""

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_CONSTANT = (*_PLAIN, tuple, frozenset)
_CODE = (FunctionType, staticmethod, classmethod, property)
_sources: WeakKeyDictionary[type, str] = WeakKeyDictionary()
"""For each class, the checksum of its source files when it was created."""
_texts: WeakKeyDictionary[type, str] = WeakKeyDictionary()
"""For each class that its compiled code identifies, its source text: finding it parses the whole file."""


def remember_source(cls: type) -> None:
    """Store the checksum of a class's source files; to be called while the class is created."""
    if not is_own(cls) and (file := _file_of(cls)) is not None:
        _sources[cls] = _checksum_of_files(file, cls.__module__)


def code_of(cls: type) -> dict[str, str] | None:
    """Return a fingerprint of the code of a class; None where all of it belongs to this package."""
    foreign = [base for base in cls.__mro__ if not is_own(base) and not _is_standard(base)]
    if not foreign:
        return None
    digest = hashlib.sha256()
    for base in foreign:
        digest.update(f"{base.__module__}:{base.__qualname__}\0{_sources.get(base)}\n".encode())
        if base not in _sources or "<locals>" in base.__qualname__:
            digest.update(f"{sys.implementation.cache_tag}\0{_Compiled().of(base)}\n".encode())
    code = {"class": f"{cls.__module__}:{cls.__qualname__}", "checksum": digest.hexdigest()}
    package = _distribution_of(cls.__module__.partition(".")[0])
    return code if package is None else code | {"package": package}


@cache
def own_code() -> str:
    """Return the checksum of this package's own files."""
    folder = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{_sha256(file)}\n".encode())
    return digest.hexdigest()


def is_own(cls: type) -> bool:
    """Return whether a class belongs to this package."""
    return is_own_module(cls.__module__)


def is_own_module(name: str) -> bool:
    """Return whether a module belongs to this package."""
    return name.partition(".")[0] == _OWN_PACKAGE


def _is_standard(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in sys.stdlib_module_names and cls.__module__ != "__main__"


def _file_of(cls: type) -> Path | None:
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not Path(file).is_file():
        return None
    path = Path(file).absolute()
    functions = [inner for inner in vars(cls).values() if isinstance(inner, FunctionType)]
    written_in = {Path(function.__code__.co_filename).absolute() for function in functions}
    return None if written_in and path not in written_in else path  # None: a notebook cell in a process started from a file


@cache
def _distribution_of(package: str) -> str | None:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None


def _checksum_of_files(file: Path, module: str) -> str:
    """Checksum of a module's file and of the files it imports from its own package, including their names."""
    name = file.stem if module == "__main__" else module
    depth = len(name.split(".")) - (file.name != "__init__.py")
    root = file.parents[depth] if depth < len(file.parents) else file.parent
    reached = _reachable_files(root, name, file)
    digest = hashlib.sha256()
    for path in sorted(reached):
        digest.update(f"{path.relative_to(root).as_posix()}\0{_sha256(path)}\n".encode())
    return digest.hexdigest()


def _reachable_files(root: Path, name: str, file: Path) -> set[Path]:
    """A module's file, those of its parent packages, and those of the modules that it imports from the same package."""
    pending, reached = [(name, file)], set[Path]()
    while pending:
        module, current = pending.pop()
        if current in reached:
            continue
        reached.add(current)
        package = module if current.name == "__init__.py" else module.rpartition(".")[0]
        for imported in (*_ancestors(module), *_imported(current, package)):
            if _belongs_to(imported, name, root):
                pending += [(imported, path) for path in _files(root, imported)]
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
    yield from (file for file in (stem / "__init__.py", *candidates) if file.is_file())


def _imported(file: Path, package: str) -> tuple[str, ...]:
    state = file.stat()
    return _parsed(file, package, state.st_mtime_ns, state.st_size) if file.suffix == ".py" else ()


@cache
def _parsed(file: Path, package: str, *state: int) -> tuple[str, ...]:
    """Full names of everything that a file may import, anywhere in it."""
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
    state = file.stat()
    return _read(file, state.st_ino, state.st_mtime_ns, state.st_ctime_ns, state.st_size)


@cache
def _read(file: Path, *state: int) -> str:
    del state
    return hashlib.sha256(file.read_bytes()).hexdigest()


class _Compiled:
    """The compiled code of functions and classes as text, each once."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}  # holds the objects, so that their ids are not reused

    def of(self, value: Any) -> str:
        """Return a text that differs if the code differs."""
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
        # Python's own attributes of a class change as the class is used
        own = [f"{key}={self.of(inner)}" for key, inner in vars(cls).items() if isinstance(inner, _CODE) or key[:2] != "__"]
        return f"class {cls.__qualname__} {_text_of(cls)} {[self.of(base) for base in cls.__bases__]} {own}"

    def _function(self, function: FunctionType) -> str:
        parts = [
            self.of(part) for part in (function.__code__, function.__defaults__, tuple((function.__kwdefaults__ or {}).items()))
        ]
        parts += [self.of(cell.cell_contents) for cell in function.__closure__ or () if _filled(cell)]
        for name in sorted(_names_in(function.__code__)):
            value = function.__globals__.get(name)
            if isinstance(value, _CONSTANT) or getattr(value, "__module__", None) == function.__module__:
                parts.append(f"{name}={self.of(value)}")
        return f"function {parts}"


def _text_of(cls: type) -> str:
    """The source text, if it is known; a notebook keeps the text of its cells."""
    if cls not in _texts:
        try:
            _texts[cls] = inspect.getsource(cls)
        except (OSError, TypeError, SyntaxError):  # SyntaxError: the file is not Python
            _texts[cls] = ""
    return _texts[cls]


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 -- an empty cell raises
    except ValueError:
        return False
    return True


def _names_in(code: CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names_in, inner))
