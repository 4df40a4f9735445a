"""``nlp-retrieval components``: list what can be composed, and explain one component."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    "path": "data/file",
    "qrels": "data/qrels.txt",
    "url": "env:DATABASE_URL",
    "search_engines url": "http://localhost:8888",
    "table": "items",
    "base_url": "http://localhost:8000/v1",
    "lm": "{model: openai/gpt-4o-mini}",
    "model": "openai/gpt-4o-mini",
    "seeds": "[bm25, faiss]",
    "retrievers": "[bm25]",
    "keywords": "[history]",
    "encoder": "colbert",
    "source": "{loader: chunk_tables, url: env:DATABASE_URL}",
    "knowledge": "data/file",
}
"""Values of parameters in the examples: of required ones, and of those without which a loader is of no use."""


def command(
    name: Annotated[str | None, typer.Argument(help="bm25; a kind, such as retrievers; with --draw a configuration.")] = None,
    of_kind: Annotated[str | None, typer.Argument(metavar="[name]", help="One of this kind, or of the configuration.")] = None,
    draw: Drawing = None,
) -> None:
    """List retrievers, rerankers, loaders, ...; explain one.

    Without a name, lists all by kind; with a kind, says what each does; of a component, shows parameters, YAML and import.
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
        console.print(_explained(name, of_kind, component_class(name, of_kind)))
    elif name in kinds():
        console.print(_listed(name))
    else:
        having = [kind for kind in kinds() if name in names(kind)]
        if not having:
            known = [*kinds(), *(other for kind in kinds() for other in names(kind))]
            close = get_close_matches(name, dict.fromkeys(known)) or kinds()
            raise ConfigurationError(f"there is no component or kind called {name!r}; {nearest(name, close)}")
        for kind in having:
            console.print(_explained(kind, name, component_class(kind, name)))


def _overview() -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from nlp_retrieval.core.components.registry import kinds, names

    rows = {kind: ", ".join(names(kind)) or "none" for kind in kinds()}
    return Group(_table(rows), Text("\nnlp-retrieval components NAME explains one; components KIND lists what a kind has."))


def _listed(kind: str) -> RenderableType:
    from nlp_retrieval.core.components.registry import component_class, names

    return _table({name: _first_sentence(inspect.getdoc(component_class(kind, name)) or "") for name in names(kind)})


def _explained(kind: str, name: str, cls: type[Component]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from nlp_retrieval.core.components.registry import describe_parameters

    summary = _plain((inspect.getdoc(cls) or "").partition("\n\n")[0])
    heading = Text.assemble((name, "bold"), f" ({kind[:-1].replace('_', ' ')}): {summary}\n")
    rows, in_index = {}, kind in {"retrievers", "encoders", "links"}
    for key, default, description, of_index in describe_parameters(cls):
        value = {"required": " (required)", "None": ""}.get(default, f" = {default}")
        rows[f"{'* ' if of_index and in_index else '  '}{key}{value}"] = _first_sentence(description).rstrip(".")
    note = "\n* belongs to the index: another value builds another index\n" if any(key[0] == "*" for key in rows) else ""
    written = {"YAML": _in_yaml(kind, name, cls), "Python": f"from {_public_module(cls)} import {cls.__name__}"}
    return Group(heading, *([_table(rows), Text(note)] if rows else []), _table(written))


def _in_yaml(kind: str, name: str, cls: type[Component]) -> str:
    """Return how a component is written in a configuration file, in one line."""
    from nlp_retrieval.core.components.component import parameters_of
    from nlp_retrieval.core.files.frames import BaseLoader

    parameters = parameters_of(cls)
    numbers = [(key, str(p.default)) for key, p in parameters.items() if type(p.default) in (int, float)]
    required = [key for key, p in parameters.items() if p.default is p.empty or key in ("qrels", "table")]
    fields = {key: _REQUIRED.get(f"{kind} {key}", _REQUIRED.get(key, "...")) for key in required} or dict(numbers[:1])
    is_loader = kind == "loaders"
    if is_loader and not issubclass(cls, BaseLoader):
        kind = "loaders of queries"
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


def _table(rows: Mapping[str, str]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(style="bold", max_width=36, overflow="fold")
    table.add_column(overflow="fold")
    for label, text in rows.items():
        table.add_row(Text(label), Text(text))
    return table


def _first_sentence(text: str) -> str:
    """Return the first sentence of a description; a dot inside a word or an abbreviation ends none."""
    return re.split(r"(?<=[^.\s]{2}\.)\s", _plain(" ".join(text.partition("\n\n")[0].split())))[0]


def _plain(text: str) -> str:
    """Return a docstring's text without its markup."""
    text = re.sub(r":\w+:`~?([^`]+)`", lambda match: match[1].rpartition(".")[2], " ".join(text.split()))
    return text.replace("``", "")
