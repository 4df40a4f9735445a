"""Run by a test, in a process of its own: components with hostile values, and what was touched while they were made.

Python tells an audit hook of every file, folder, socket, process and import. What was touched, and
what became of each trial, is told as JSON.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nlp_retrieval.core.components.component import Component, canonical_json, parameters_of
from nlp_retrieval.core.components.registry import build_from_manifest, component_class, kinds, names, plan
from nlp_retrieval.errors import RetrievalError

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


def hostile_configs(kind: str, outside: Path) -> Iterator[dict[str, Any]]:
    """Every component of a kind with each parameter in turn set to every value."""
    for name in names(kind):
        for parameter in parameters_of(component_class(kind, name)):
            yield from ({"name": name, parameter: value} for value in hostile_values(outside))


def use_component(kind: str, config: dict[str, Any]) -> None:
    """What is done with any component that a manifest describes, before anything is asked of it."""
    (made,) = build_from_manifest(Component, [plan(kind, config, kind)], "the manifest")
    repr(made)
    canonical_json([made.config, made.identity])
    made.provenance()


def main(outside: Path) -> None:
    """Try every component that is registered, and tell what each led to."""
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
    for kind, changed in ((each, config) for each in kinds() for config in hostile_configs(each, outside)):
        touched.clear()
        watching = True
        try:
            use_component(kind, changed)
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
    main(Path(sys.argv[1]))
