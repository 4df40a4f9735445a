"""No setting is accepted and then read by nothing."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Collection
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import nlp_retrieval
from nlp_retrieval.benchmarks.settings import BenchmarkSettings
from nlp_retrieval.core.components.component import Component
from nlp_retrieval.rerankers.multi_signal.profile import Profile
from nlp_retrieval.service.settings import ServiceLimits, ServiceSettings

PACKAGE = Path(nlp_retrieval.__file__).parent
KINDS = ("loaders", "processors", "retrievers", "rerankers", "encoders", "fusions", "searchers", "verifiers", "answerers")
COMPONENTS = sorted(
    {
        entry.load()
        for kind in KINDS
        for entry in entry_points(group=f"nlp_retrieval.{kind}")
        if entry.value.startswith("nlp_retrieval.")
    },
    key=lambda component: component.__qualname__,
)


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


@cache
def attributes_read(file: Path) -> frozenset[str]:
    """The names of attributes that a module reads, and its strings, by which some are read."""
    nodes = list(ast.walk(tree_of(file)))
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    return frozenset(read | {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)})


def used_in_constructor(component: type[Component]) -> set[str]:
    """Parameters that the constructor does more with than to keep them."""
    for node in ast.walk(tree_of(Path(inspect.getfile(component)))):
        if isinstance(node, ast.ClassDef) and node.name == component.__name__:
            (made,) = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"] or [None]
            if made is None:
                return set()
            kept = {
                id(part.value)
                for part in ast.walk(made)
                if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Attribute)
            }
            names = [part for part in ast.walk(made) if isinstance(part, ast.Name) and id(part) not in kept]
            in_tuples = {
                name.id
                for part in ast.walk(made)
                if isinstance(part, ast.Assign) and isinstance(part.value, ast.Tuple)
                for name in part.value.elts
                if isinstance(name, ast.Name)
            }
            return {name.id for name in names} - in_tuples
    return set()


def test_every_parameter_of_a_component_is_read() -> None:
    unread = []
    for component in COMPONENTS:
        files = {
            file
            for base in component.__mro__
            if base.__module__.startswith("nlp_retrieval.")
            for file in Path(inspect.getfile(sys.modules[base.__module__])).parent.glob("*.py")
        }
        read = used_in_constructor(component).union(*map(attributes_read, files))
        parameters = [name for name, one in inspect.signature(component).parameters.items() if one.kind not in (2, 4)]
        unread += [f"{component.__name__}.{name}" for name in parameters if name not in read]
    assert unread == []


def test_every_field_of_settings_is_read() -> None:
    for settings in (Profile, BenchmarkSettings, ServiceLimits, ServiceSettings):
        check_fields(settings, unless={"max_hops"})  # of a profile, for retrievers of others


def check_fields(settings: type[Any], unless: Collection[str] = ()) -> None:
    """Check that some module reads each field of settings, unless it is one of these."""
    fields = settings.model_fields if issubclass(settings, BaseModel) else settings.__dataclass_fields__
    own = Path(inspect.getfile(settings))
    files = [file for file in PACKAGE.rglob("*.py") if file != own or settings is not Profile]
    read = frozenset().union(*map(attributes_read, files))
    assert [name for name in fields if name not in {*read, *unless}] == []
