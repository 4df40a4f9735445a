"""Run by a test, in a process of its own: manifests with hostile values, and what was touched while they were used.

Python tells an audit hook of every file, folder, socket, process and import. What lies outside the
index, and what became of each trial, is told as JSON.
"""

from __future__ import annotations

import copy
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from nlp_retrieval import SearchableItem
from nlp_retrieval.core.components.component import Component, canonical_json, parameters_of
from nlp_retrieval.core.components.registry import (
    asked_for,
    build_from_manifest,
    component_class,
    kinds,
    names,
    plan,
    require_trust,
)
from nlp_retrieval.core.index.update import add_items
from nlp_retrieval.core.search.base_searcher import resolver, retrievers_of
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import RetrievalError

from .planting import write_forged

_WATCHED = ("open", "os.mkdir", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink")
_FORBIDDEN = ("socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen", "os.exec", "os.system", "os.fork")


def hostile_values(outside: Path) -> list[Any]:
    """What an attacker would put into any field."""
    model, file = str(outside / "model"), str(outside / "secret.jsonl")
    encoder = {"name": "sentence-transformers", "model": model, "trust_remote_code": True}
    return [
        *(True, None, -1, 2**80, "", "nan", "\ud800", [], {}, [[[]]], "../" * 12 + "etc/passwd", f"..{outside}", model, file),
        *("http://127.0.0.1:9/", f"sqlite:///{outside}/secret.db", "env:HOME", "hostile:Hostile", "os:system"),
        *({"name": model}, encoder, {"name": "faiss", "encoder": encoder}, {"name": "jsonl", "path": file}),
        {"name": "database", "url": f"sqlite:///{outside}/secret.db"},
        {"name": "dspy", "model": "openai/x", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "HOME"},
    ]


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a manifest, from the top."""
    if path:
        yield path
    keys = content if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        yield from places(content[key], (*path, key))


def replaced(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(content)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def hostile_configs(kind: str, outside: Path) -> Iterator[dict[str, Any]]:
    """Every component of a kind with each parameter in turn set to every value."""
    for name in names(kind):
        for parameter in parameters_of(component_class(kind, name)):
            yield from ({"name": name, parameter: value} for value in hostile_values(outside))


def hostile_manifests(content: dict[str, Any], outside: Path) -> Iterator[dict[str, Any]]:
    """A manifest with every field in turn set to every value, and with every retriever and encoder so."""
    for path in places(content):
        for value in hostile_values(outside):
            yield replaced(content, path, value)
    for kind in ("retrievers", "encoders"):
        for config in hostile_configs(kind, outside):
            whole = config if kind == "retrievers" else {"name": "faiss", "encoder": config}
            yield replaced(content, ("retrievers", 0, "config"), whole)


def use_index(folder: Path) -> None:
    """What the command line does with an index: search it with its own retrievers, and add to it."""
    Searcher(retrievers_of(folder)).open(folder).search(["whale"], 3)
    add_items(folder, [SearchableItem(item_id="another", content="whale")], resolver(), replace=True)


def use_component(kind: str, config: dict[str, Any]) -> None:
    """What is done with any component that a manifest describes, before anything is asked of it."""
    described = plan(kind, config, kind)
    require_trust(asked_for(described), "the manifest", "", trust=False)
    made = build_from_manifest(Component, described, trust=False)
    repr(made)
    canonical_json([made.config, made.identity])
    made.provenance()


def trials(index: Path, outside: Path) -> Iterator[tuple[object, Callable[[], None]]]:
    """Manifests of an index; without one, every component that is registered."""
    if not index.exists():
        for kind in kinds():
            for config in hostile_configs(kind, outside):
                yield config, partial(use_component, kind, config)
        return
    original = (index / "manifest.json").read_bytes()
    for changed in hostile_manifests(json.loads(original), outside):
        try:
            write_forged(index, changed)
        except ValueError:  # half of a surrogate pair, which no file of text holds
            continue
        yield changed, partial(use_index, index)
        (index / "manifest.json").write_bytes(original)


def main(index: Path, outside: Path) -> None:
    """Try manifests, and tell what each led to."""
    warnings.simplefilter("ignore")
    touched: list[str] = []
    watching = False

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and (
            event in _FORBIDDEN
            or (event in _WATCHED and str(outside) in str(arguments[0]))
            or (event == "import" and str(arguments[0]).startswith("modeling_own"))
        ):
            touched.append(f"{event} {arguments!r}"[:300])

    sys.addaudithook(heard)
    outcomes, wrong = Counter[str](), []
    for changed, use in trials(index, outside):
        touched.clear()
        watching = True
        try:
            use()
            outcome = "used"
        except RetrievalError as error:
            outcome = type(error).__name__
        except Exception as error:
            outcome = "raw"
            touched.append(f"{type(error).__name__}: {error}")
        watching = False
        outcomes[outcome] += 1
        if touched:
            wrong.append([*touched, repr(changed)[:3000]])
    sys.stdout.write(json.dumps({"outcomes": outcomes, "wrong": wrong[:20]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
