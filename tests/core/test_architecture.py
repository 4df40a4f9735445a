"""The floors and rooms of the package, the modules that nobody may import, and the public names."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import nlp_retrieval
from nlp_retrieval._public_names import ROOMS, modules_of

PACKAGE = Path(nlp_retrieval.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

FLOORS = (
    "errors _version _public_names",
    "core",
    "core.components",
    "core.files",
    "core.index",
    "core.search",
    "text",
    "loaders lm evaluation",
    "documents encoders lm.answering",
    "processors retrievers rerankers",
    "benchmarks",
    "reports",
    "agents",
    "service",
    "judging",
    "gate demo",
    "testing cli integrations",
    "__main__",
    "systems",
    "systems.hover systems.hipporag systems.evidence systems.policy",
    "hover hipporag evidence policy",
)
"""From the ground up: a room imports rooms of the floors below it, and none beside it."""

FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms.split()}
PUBLIC = "nlp_retrieval._public_names"
SHORT_NAMES = {f"nlp_retrieval.{system}" for system in ("hover", "hipporag", "evidence", "policy")}
"""Modules that are a package of ``nlp_retrieval.systems`` under a shorter name."""

CODE_IN_DATA = {"pickle", "_pickle", "cPickle", "joblib", "dill", "cloudpickle", "shelve", "marshal", "jsonpickle"}

CALLS_THAT_RUN_DATA = {"eval", "exec", "compile", "__import__", "torch.load"} | {
    f"yaml.{name}" for name in ("unsafe_load", "full_load", "load_all", "unsafe_load_all", "full_load_all")
}


def room_of(module: str) -> str:
    """The room of a module, by its full name; some rooms are parts of a folder."""
    parts = module.split(".")[1:]
    if ".".join(parts[:2]) in FLOOR:
        return ".".join(parts[:2])
    return parts[0] if parts else ""


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in FILES}


def known(name: str) -> str:
    """The module that an imported name is, or is in."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


@cache
def tree_of(file: Path) -> ast.Module:
    """What a file says; each is read once, however many rules look at it."""
    return ast.parse(file.read_text("utf-8"))


@cache
def calls_in(file: Path) -> list[tuple[ast.Call, str]]:
    """Every call of a file, and what it calls."""
    return [(node, ast.unparse(node.func)) for node in ast.walk(tree_of(file)) if isinstance(node, ast.Call)]


@cache
def imports_of(file: Path) -> list[tuple[int, str]]:
    """Line and full name of every module that a file imports, also inside functions and for types alone."""
    return list(_imports(file))


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    package = ["nlp_retrieval", *file.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            begin = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*begin, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from ((node.lineno, str(part.value)) for part in node.args[:1] if isinstance(part, ast.Constant))


def identified(files, check) -> list[str]:
    return [f"{file.relative_to(PACKAGE)}:{line}: {what}" for file in files for line, what in check(file)]


def test_every_room_is_known():
    assert {room_of(module) for module in MODULES} - {""} <= set(FLOOR)


def test_rooms_import_from_the_floors_below_them_only():
    def against(file):
        module, room = module_of(file), room_of(module_of(file))
        for line, name in imports_of(file):
            target = known(name)
            if not name.startswith("nlp_retrieval") or module == "nlp_retrieval" or name == f"{PUBLIC}.public_names":
                continue
            other = room_of(target)
            if (room.startswith("systems.") and other != room) or module in SHORT_NAMES:
                continue  # see the next test
            if target == name and file.name != "__init__.py" and MODULES[target].name == "__init__.py":
                yield line, f"{name}: import from the module that defines it"
            elif other != room and FLOOR.get(other, 99) >= FLOOR[room]:
                yield line, f"{room} imports {name}"

    assert identified(FILES, against) == []


def test_systems_import_public_names_of_the_library_alone():
    """As anyone's plug-in would: the names that packages export, and never another system."""
    packages = ["nlp_retrieval", "nlp_retrieval.testing", *(f"nlp_retrieval.{room}" for room in ROOMS)]
    public = {f"{package}.{name}" for package in packages for name in importlib.import_module(package).__all__}

    def against(file):
        system = room_of(module_of(file))
        for line, name in imports_of(file):
            if not name.startswith("nlp_retrieval") or name.startswith(f"nlp_retrieval.{system}."):
                continue
            if name not in public | {f"{PUBLIC}.public_names"} and known(name) != "nlp_retrieval.errors":
                yield line, name

    assert identified([file for file in FILES if room_of(module_of(file)).startswith("systems.")], against) == []


def test_the_library_names_no_system():
    library = [file for file in FILES if not room_of(module_of(file)).startswith("systems.")]

    def named(file):
        for line, name in imports_of(file):
            if module_of(file) not in SHORT_NAMES and name.startswith(("nlp_retrieval.systems", *SHORT_NAMES)):
                yield line, name

    assert identified(library, named) == []


def test_no_modules_import_one_another_in_a_circle():
    """Imports inside functions and for types alone included."""
    arrows = {
        module: {target for _, name in imports_of(file) if (target := known(name)) not in {"", "nlp_retrieval", module}}
        for module, file in MODULES.items()
        if module != "nlp_retrieval"
    }
    done: set[str] = set()
    while True:
        free = {module for module, targets in arrows.items() if module not in done and targets <= done}
        if not free:
            break
        done |= free
    assert sorted(set(arrows) - done) == []


def test_a_class_name_stands_for_one_class():
    places: dict[str, list[str]] = {}
    for module, file in MODULES.items():
        for node in tree_of(file).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_workers_alone_speak_in_pickles():
    """Connections of multiprocessing unpickle what they receive."""

    def speaks(file):
        yield from ((line, name) for line, name in imports_of(file) if name.startswith("multiprocessing"))

    workers = PACKAGE / "encoders" / "passages.py"
    assert identified([file for file in FILES if file != workers], speaks) == []


def test_nothing_is_imported_that_makes_code_out_of_data():
    def forbidden(file):
        return ((line, name) for line, name in imports_of(file) if name.split(".")[0] in CODE_IN_DATA)

    assert identified(FILES, forbidden) == []


def test_nothing_is_called_that_makes_code_out_of_data():
    def forbidden(file):
        for node, called in calls_in(file):
            if called in CALLS_THAT_RUN_DATA:
                yield node.lineno, called
            loaders = [ast.unparse(part) for part in [*node.args[1:], *(keyword.value for keyword in node.keywords)]]
            if called == "yaml.load" and not {"_Loader", "yaml.SafeLoader"} & set(loaders):
                yield node.lineno, "yaml.load without a safe loader"
            for keyword in node.keywords:
                value = ast.unparse(keyword.value)
                refused = {"allow_pickle": value != "False", "shell": value != "False", "trust_remote_code": value == "True"}
                if refused.get(str(keyword.arg)):
                    yield node.lineno, f"{called}({keyword.arg}={value})"
            if called.endswith(("Read_Pickle", "read_pickle", "to_pickle", "os.system", "os.popen")):
                yield node.lineno, called

    assert identified(FILES, forbidden) == []


# public names


PACKAGES = ["nlp_retrieval", *(f"nlp_retrieval.{room}" for room in ROOMS)]
PACKAGES += [entry.value for entry in entry_points(group="nlp_retrieval.systems")]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_public_names_of_a_package_are_declared_and_importable(package):
    tree = ast.parse((MODULES[package].parent / "__init__.pyi").read_text("utf-8"))
    declared = {alias.asname: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert declared == modules_of(package)
    imported = importlib.import_module(package)
    assert imported.__all__ == sorted(declared) == dir(imported)
    for name, module in declared.items():
        value = getattr(imported, name)
        assert value is getattr(importlib.import_module(module), name)
        if isinstance(value, type):
            origin = value.__module__
            assert origin == module or origin.partition(".")[0] == "numpy", f"{name}: not where it is defined"


def modules_after(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_else():
    mine = {name for name in modules_after("import nlp_retrieval") if name.startswith("nlp_retrieval")}
    assert mine == {"nlp_retrieval", "nlp_retrieval._version", "nlp_retrieval._public_names"}
    assert not modules_after("import nlp_retrieval") & {"numpy", "pyarrow", "pydantic", "faiss", "torch"}


def test_the_command_line_imports_what_a_command_needs_when_it_runs():
    imported = modules_after("import nlp_retrieval.cli.app")
    assert "nlp_retrieval.cli.serve" in imported
    assert not imported & {"numpy", "pyarrow", "pydantic", "yaml"}
