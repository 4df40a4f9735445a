"""Run by a test, in a process of its own: manifests with hostile values, and what was touched while they were used.

Python tells an audit hook of every file, folder, socket, process and import. What is touched beyond the index, the cache
folder and installed packages is told as a line of JSON, and so is what became of each trial.
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
from nlp_retrieval.core.index.generation import _checksum
from nlp_retrieval.core.index.update import add_items
from nlp_retrieval.core.search.base_searcher import resolver, retrievers_of
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import RetrievalError

_WATCHED = ("open", "os.mkdir", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink")
_FORBIDDEN = ("socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen", "os.exec", "os.system", "os.fork")


class Watch:
    """What was touched while it was on."""

    def __init__(self, outside: Path) -> None:
        self.outside = str(outside)
        self.on = False
        self.touched: list[str] = []
        sys.addaudithook(self.heard)

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in _FORBIDDEN:
            self.touched.append(f"{event} {arguments!r}")
        elif event in _WATCHED and self.outside in str(arguments[0]):
            self.touched.append(f"{event} {arguments[0]!r}")
        elif event == "import" and str(arguments[0]).startswith("modeling_own"):
            self.touched.append(f"import {arguments[0]}")


def hostile_values(outside: Path) -> list[Any]:
    """What an attacker would put into any field."""
    model = str(outside / "model")
    return [
        *(True, None, -1, 2**80, "", "nan", "\ud800", [], {}, [[[]]], "../" * 12 + "etc/passwd", f"..{outside}"),
        *(model, {"name": model}, {"name": "sentence-transformers", "model": model, "trust_remote_code": True}),
        {"name": "faiss", "encoder": {"name": "sentence-transformers", "model": model, "trust_remote_code": True}},
        *({"name": "shared_entities", "mentions": str(outside / "pipeline")}, [{"name": "shared_entities", "mentions": model}]),
        *(str(outside / "secret.jsonl"), {"name": "jsonl", "path": str(outside / "secret.jsonl")}),
        *("http://127.0.0.1:9/", "sqlite:///" + str(outside / "secret.db"), "env:HOME", "hostile:Hostile", "os:system"),
        *(
            {"name": "database", "url": f"sqlite:///{outside}/secret.db"},
            {"name": "trec_run", "path": f"{outside}/secret.jsonl"},
        ),
        {"name": "dspy", "model": "openai/x", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "HOME"},
    ]


def configs_of(kind: str, outside: Path) -> Iterator[dict[str, Any]]:
    """Every component of a kind, with each parameter in turn set to each hostile value."""
    values = hostile_values(outside)
    for name in names(kind):
        yield {"name": name}
        for parameter in parameters_of(component_class(kind, name)):
            for value in values:
                yield {"name": name, parameter: value}


def holding(kind: str, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Retrievers that hold a component of a kind that is no retriever: each of ours that has a parameter for it."""
    parameter = {"encoders": "encoder", "links": "links", "language_models": "lm"}[kind]
    for name in names("retrievers"):
        if parameter in parameters_of(component_class("retrievers", name)):
            beside = {"seeds": [{"name": "bm25"}]} if name == "link_graph" else {}
            yield {"name": name, parameter: [config] if kind == "links" else config} | beside


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a manifest, from the top."""
    if path:
        yield path
    if isinstance(content, dict):
        for key in content:
            yield from places(content[key], (*path, key))
    elif isinstance(content, list):
        for number, _ in enumerate(content):
            yield from places(content[number], (*path, number))


def replaced(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(content)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def index_manifests(content: dict[str, Any], outside: Path) -> Iterator[dict[str, Any]]:
    for path in places(content):
        for value in hostile_values(outside):
            yield replaced(content, path, value)
    for config in configs_of("retrievers", outside):
        yield replaced(content, ("retrievers", 0, "config"), config)
    for kind in ("encoders", "links", "language_models"):
        for config in configs_of(kind, outside):
            for holder in holding(kind, config):
                yield replaced(content, ("retrievers", 0, "config"), holder)


def use_index(folder: Path) -> None:
    """What the command line does with an index: search it with its own retrievers, and add to it."""
    searcher = Searcher(retrievers_of(folder)).open(folder)
    searcher.search(["whale"], 3)
    add_items(folder, [SearchableItem(item_id="another", content="whale")], resolver(), replace=True)


def use_component(kind: str, config: dict[str, Any]) -> None:
    """What is done with any component that a manifest describes, before anything is asked of it."""
    described = plan(kind, config, kind)
    require_trust(asked_for(described), "the manifest", "", trust=False)
    made = build_from_manifest(Component, described, trust=False)
    repr(made)
    canonical_json([made.config, made.identity])
    made.provenance()


def sign(content: dict[str, Any]) -> bytes:
    """A manifest as its writer would leave it: whoever writes one writes its checksum."""
    plain = {key: value for key, value in content.items() if key != "checksum"}
    try:
        return json.dumps(plain | {"checksum": _checksum(plain)}).encode("utf-8", "surrogatepass")
    except (ValueError, UnicodeError):
        return json.dumps(plain).encode("utf-8", "surrogatepass")


def tried(use: Callable[[], object], watch: Watch, counts: Counter[str]) -> str | None:
    """Use a manifest; returns what it led to that it must not lead to."""
    watch.touched.clear()
    watch.on = True
    try:
        use()
        outcome = "used"
    except RetrievalError as error:
        outcome = type(error).__name__
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        watch.on = False
    counts[outcome] += 1
    return "; ".join(watch.touched) or None


def main(kind: str, target: Path, outside: Path) -> None:
    """Try manifests of a kind.

    Args:
        kind: ``index``, or ``component`` for every component that is registered.
        target: an index directory; of components none is used.
        outside: what nobody may touch.
    """
    warnings.simplefilter("ignore")
    watch, counts, wrong = Watch(outside), Counter[str](), []
    if kind == "component":
        for each in kinds():
            for config in configs_of(each, outside):
                if led_to := tried(partial(use_component, each, config), watch, counts):
                    wrong.append([led_to, f"{each}: {config!r}"[:3000]])
        _tell(counts, wrong)
        return
    path = target / "manifest.json"
    original = path.read_bytes()
    content = json.loads(original)
    content.pop("checksum", None)
    for changed in index_manifests(content, outside):
        if canonical_json_or_none(changed) == canonical_json(content):
            continue
        path.write_bytes(sign(changed))
        led_to = tried(lambda: use_index(target), watch, counts)
        path.write_bytes(original)
        if led_to:
            wrong.append([led_to, repr(changed)[:3000]])
    _tell(counts, wrong)


def _tell(counts: Counter[str], wrong: list[list[str]]) -> None:
    sys.stdout.write(json.dumps({"outcomes": counts, "wrong": wrong[:20], "n_wrong": len(wrong)}))


def canonical_json_or_none(content: Any) -> str | None:
    try:
        return canonical_json(content)
    except ValueError:
        return None


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
