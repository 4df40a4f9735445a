"""The arrows between rooms, the modules that nobody may import, and the public names."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nlp_retrieval

PACKAGE = Path(nlp_retrieval.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
ROOMS = {"loaders", "processors", "retrievers", "rerankers"}
BASE = {"core", "errors", "_version"}
MAY_IMPORT = (
    {"errors": set(), "_version": set(), "core": {"errors", "_version"}, "demo": set()}
    | {"encoders": BASE, "graph": BASE, "lm": BASE}
    | {room: BASE | {"encoders", "graph", "lm"} for room in ROOMS}
    | {"pipelines": BASE | ROOMS | {"encoders", "graph", "lm"}}
    | {"benchmarks": BASE | ROOMS | {"encoders", "graph", "lm", "pipelines"}}
    | {"testing": BASE | {"encoders"}}
    | {"cli": BASE | ROOMS | {"encoders", "graph", "lm", "pipelines", "benchmarks", "demo"}}
)
CODE_IN_DATA = {"pickle", "_pickle", "cPickle", "joblib", "dill", "cloudpickle", "shelve", "marshal", "jsonpickle"}

CALLS_THAT_RUN_DATA = {"eval", "exec", "compile", "__import__", "torch.load"} | {
    f"yaml.{name}" for name in ("unsafe_load", "full_load", "load_all", "unsafe_load_all", "full_load_all")
}


def room_of(file: Path) -> str:
    """The room that a file is in; a module beside the rooms is a room of its own."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(file: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that a file imports, also inside functions and for types alone."""
    package = ["nlp_retrieval", *file.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
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
    assert {room_of(file) for file in FILES} - {"__init__"} <= set(MAY_IMPORT)


def test_rooms_import_along_the_arrows_only():
    def against(file):
        room = room_of(file)
        for line, name in imported(file):
            parts = name.split(".")
            if parts[0] != "nlp_retrieval" or room == "__init__":
                continue
            if len(parts) == 1 or parts[1] not in MAY_IMPORT:
                yield line, f"{name}: import from the module that defines it"
            elif parts[1] != room and parts[1] not in MAY_IMPORT[room]:
                yield line, f"{room} imports {name}"

    assert identified(FILES, against) == []


def test_the_check_of_arrows_sees_an_arrow_that_is_wrong(tmp_path, monkeypatch):
    file = PACKAGE / "core" / "planted.py"
    source = "from nlp_retrieval.loaders.jsonl import JsonlLoader\ndef f():\n    from ..retrievers import faiss\n"
    monkeypatch.setattr(Path, "read_text", lambda self, *a: source)
    assert [name for _, name in imported(file)] == [
        "nlp_retrieval.loaders.jsonl.JsonlLoader",
        "nlp_retrieval.retrievers.faiss.retriever",
    ]


def test_nothing_is_imported_that_makes_code_out_of_data():
    def forbidden(file):
        return ((line, name) for line, name in imported(file) if name.split(".")[0] in CODE_IN_DATA)

    assert identified(FILES, forbidden) == []


def test_nothing_is_called_that_makes_code_out_of_data():
    def forbidden(file):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
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


def test_the_loader_of_configurations_is_a_safe_one():
    import yaml

    from nlp_retrieval.core.files.yaml_text import _Loader

    assert issubclass(_Loader, yaml.SafeLoader)
    assert not issubclass(_Loader, (yaml.FullLoader, yaml.UnsafeLoader))


def test_nothing_prints():
    def printing(file):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
                yield node.lineno, "print"

    assert identified([file for file in FILES if room_of(file) != "cli"], printing) == []


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.name != "_version.py"], ids=lambda file: str(file.relative_to(PACKAGE))
)
def test_every_module_says_what_it_decides(file):
    assert ast.get_docstring(ast.parse(file.read_text("utf-8")))


# public names


def test_the_public_names_are_those_of_the_lazy_table():
    assert sorted(nlp_retrieval.__all__) == sorted([*nlp_retrieval._MODULES, "__version__"])
    assert len(set(nlp_retrieval.__all__)) == len(nlp_retrieval.__all__)
    assert set(dir(nlp_retrieval)) == set(nlp_retrieval.__all__)


def test_type_checkers_see_the_names_of_the_lazy_table_in_the_same_modules():
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: str(node.module).removeprefix("nlp_retrieval.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == nlp_retrieval._MODULES


@pytest.mark.parametrize("name", sorted(nlp_retrieval._MODULES))
def test_every_public_name_is_importable(name):
    value = getattr(nlp_retrieval, name)
    assert value is getattr(importlib.import_module(f"nlp_retrieval.{nlp_retrieval._MODULES[name]}"), name)
    assert value.__module__ == f"nlp_retrieval.{nlp_retrieval._MODULES[name]}", "not where it is defined"


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Sercher'"):
        nlp_retrieval.Sercher  # noqa: B018


def test_every_error_is_in_the_tree_that_the_docstring_draws():
    from nlp_retrieval import errors

    drawn = errors.__doc__ or ""
    defined = [value for value in vars(errors).values() if isinstance(value, type) and value.__module__ == errors.__name__]
    for error in defined:
        assert f" {error.__name__}" in drawn
        assert issubclass(error, (errors.RetrievalError, UserWarning))
        assert error.__doc__


def modules_after(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_else():
    mine = {name for name in modules_after("import nlp_retrieval") if name.startswith("nlp_retrieval")}
    assert mine == {"nlp_retrieval", "nlp_retrieval._version"}
    assert not modules_after("import nlp_retrieval") & {"numpy", "pyarrow", "pydantic", "faiss", "torch"}


def test_a_searcher_needs_no_extra():
    extras = {
        "torch",
        "sentence_transformers",
        "transformers",
        "wandb",
        "jnius",
        "pyserini",
        "dspy",
        "spacy",
        "sqlalchemy",
        "bm25s",
        "faiss",
    }
    assert not modules_after("from nlp_retrieval import Searcher, RetrievalResult, ReciprocalRankFusion") & extras
