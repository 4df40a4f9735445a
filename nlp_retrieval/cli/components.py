"""``nlp-retrieval components``: list what can be composed, and explain one component."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from nlp_retrieval.cli.search import Drawing, configured, write_drawing

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nlp_retrieval.core.components.component import Component

_PLACES = {
    "loaders": "corpus: {}",
    "loaders of queries": "queries: {}",
    "processors": "processor: {}",
    "retrievers": "retrievers: [{}]",
    "rerankers": "reranker: {}",
    "encoders": "encoder: {}",
    "fusions": "fusion: {}",
    "searchers": "searchers: {{mine: {}}}",
    "links": "links: [{}]",
    "answerers": "answerer: {}",
    "language_models": "lm: {}",
}
"""Where a component of a kind is written in a configuration file; one of another kind is shown by itself."""

_REQUIRED = {
    "path": "data/corpus.jsonl",
    "qrels": "data/qrels.txt",
    "url": "env:DATABASE_URL",
    "base_url": "http://localhost:8080",
    "lm": "{name: dspy, model: openai/gpt-4o-mini}",
    "model": "openai/gpt-4o-mini",
    "seeds": "[bm25, faiss]",
    "retrievers": "[bm25, faiss]",
    "processors": "[clauses]",
    "keywords": "[history]",
    "encoder": "colbert",
    "source": "{loader: jsonl, path: data/corpus.jsonl}",
}
"""Values of required parameters in the examples."""


def command(
    name: Annotated[
        str | None,
        typer.Argument(help="A component, such as bm25, a kind, such as retrievers, or with --draw a configuration."),
    ] = None,
    of_kind: Annotated[
        str | None,
        typer.Argument(metavar="[name]", help="After a kind, a component of it; after a configuration, one of its searchers."),
    ] = None,
    draw: Drawing = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Describe each parameter in full.")] = False,
) -> None:
    """List retrievers, rerankers, loaders, ...; explain one.

    Without a name, lists all components by kind. With a kind, says what each of its components does. With the name of a
    component, shows its parameters, how to write it in YAML and from where to import it.
    """
    from rich.console import Console

    from nlp_retrieval.core.components.registry import component_class, kinds, names
    from nlp_retrieval.errors import ConfigurationError, nearest

    console = Console(highlight=False)
    if draw is not None:
        if name is None:
            raise ConfigurationError("--draw needs a configuration: nlp-retrieval components BENCHMARK.yaml --draw FILE")
        write_drawing(configured(Path(name), of_kind), draw)
    elif name is None:
        console.print(_overview())
    elif of_kind is not None:
        console.print(_explained(name, of_kind, component_class(name, of_kind), verbose=verbose))
    elif name in kinds():
        console.print(_listed(name))
    else:
        having = [kind for kind in kinds() if name in names(kind)]
        if not having:
            known = [*kinds(), *(other for kind in kinds() for other in names(kind))]
            close = get_close_matches(name, dict.fromkeys(known)) or kinds()
            raise ConfigurationError(f"there is no component or kind called {name!r}; {nearest(name, close)}")
        for kind in having:
            console.print(_explained(kind, name, component_class(kind, name), verbose=verbose))


def _overview() -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from nlp_retrieval.core.components.registry import kinds, names

    table = _table()
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for kind in kinds():
        table.add_row(kind, Text(", ".join(names(kind)) or "none"))
    return Group(table, Text("\nnlp-retrieval components NAME explains one; components KIND lists what a kind has."))


def _listed(kind: str) -> RenderableType:
    from rich.text import Text

    from nlp_retrieval.core.components.registry import component_class, names

    table = _table()
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name in names(kind):
        table.add_row(Text(name), Text(_first_sentence(inspect.getdoc(component_class(kind, name)) or "")))
    return table if names(kind) else Text(f"no {kind} are registered")


def _explained(kind: str, name: str, cls: type[Component], *, verbose: bool = False) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from nlp_retrieval.core.components.registry import describe_parameters

    summary = _plain((inspect.getdoc(cls) or "").partition("\n\n")[0])
    heading = Text.assemble((name, "bold"), f" ({kind[:-1].replace('_', ' ')}): {summary}\n")
    hints, found = get_type_hints(cls.__init__), list(describe_parameters(cls))
    in_index = {key for key, _, _, of_index in found if of_index and kind in {"retrievers", "encoders", "links"}}
    table = _table()
    table.add_column(no_wrap=True)
    table.add_column(max_width=22, overflow="fold")
    table.add_column()
    for key, default, description, _ in found:
        label = Text.assemble("* " if key in in_index else "  " if in_index else "", (key, "bold"))
        value = {"required": " (required)", "None": ""}.get(default, f" = {default}")
        summary = _plain(description) if verbose else re.split(r"; ", _first_sentence(description))[0].rstrip(".")
        table.add_row(label, Text(f"{_type(hints.get(key, Any))}{value}"), Text(summary))
    note = "\n* belongs to the index: another value builds another index" if in_index else ""
    examples = _table()
    examples.add_column(style="bold")
    examples.add_column(overflow="fold")
    examples.add_row("YAML", Text(_in_yaml(kind, name, cls)))
    examples.add_row("Python", Text(f"from {_public_module(cls)} import {cls.__name__}"))
    return Group(heading, *([table, Text(f"{note}\n")] if found else []), examples)


def _in_yaml(kind: str, name: str, cls: type[Component]) -> str:
    """Return how a component is written in a configuration file, in one line."""
    from nlp_retrieval.core.components.component import parameters_of
    from nlp_retrieval.core.files.frames import BaseLoader

    parameters = parameters_of(cls)
    numbers = [(key, str(p.default)) for key, p in parameters.items() if type(p.default) in (int, float)]
    fields = {key: _REQUIRED.get(key, "...") for key, p in parameters.items() if p.default is p.empty} or dict(numbers[:1])
    is_loader = kind == "loaders"
    if is_loader and not issubclass(cls, BaseLoader):
        files = {"path": "data/queries.tsv", "qrels": _REQUIRED["qrels"]}
        kind, fields = "loaders of queries", fields | {key: files[key] for key in files if key in parameters}
    parts = [f"{'loader' if is_loader else 'name'}: {name}", *(f"{key}: {value}" for key, value in fields.items())]
    whole = name if len(parts) == 1 and not is_loader else f"{{{', '.join(parts)}}}"
    return _PLACES.get(kind, "{}").format(whole)


def _public_module(cls: type[Component]) -> str:
    """Return the shortest module that exports a class."""
    systems = {entry.value: f"nlp_retrieval.{entry.name}" for entry in entry_points(group="nlp_retrieval.systems")}
    parts = cls.__module__.split(".")
    for count in range(1, len(parts)):
        module = ".".join(parts[:count])
        if cls.__name__ in getattr(importlib.import_module(module), "__all__", ()):
            return systems.get(module, module)
    return cls.__module__


def _type(hint: Any) -> str:
    """Return a type as a reader of a configuration file knows it: ``"list of str"``, ``"torch | onnx"``."""
    from nlp_retrieval.core.components.component import Component

    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _type(inner[0])
    if origin in (Union, UnionType):  # a component may also be given by name, and a parameter without a default left out
        parts = [part for part in inner if part is not NoneType]
        named = [part for part in parts if isinstance(part, type) and issubclass(part, Component)]
        return " | ".join(dict.fromkeys(map(_type, named or parts)))
    if origin is Literal:
        return " | ".join(map(str, inner))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"list of {_type(inner[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "mapping"
    return {Any: "any", Path: "path"}.get(hint) or str(getattr(hint, "__name__", hint))


def _table() -> Any:
    from rich.table import Table

    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)


def _first_sentence(text: str) -> str:
    """Return the first sentence of a description; a dot inside a word or an abbreviation ends none."""
    return re.split(r"(?<=[^.\s]{2}\.)\s", _plain(" ".join(text.partition("\n\n")[0].split())))[0]


def _plain(text: str) -> str:
    """Return a docstring's text without its markup."""
    text = re.sub(r":\w+:`~?([^`]+)`", lambda match: match[1].rpartition(".")[2], " ".join(text.split()))
    return text.replace("``", "")
