"""Examples in docstrings: which names need one, what examples may use, and whether they do what they say."""

from __future__ import annotations

import doctest
import inspect
import re
import warnings
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest

from nlp_retrieval._public_names import modules_of

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

SETUP = """
import json
from pathlib import Path

from nlp_retrieval import Gold, Query, SearchableItem
from nlp_retrieval.agents import AgentStep, Trajectory

items = [
    SearchableItem(item_id="whale", content="It eats tons of Krill a day.", metadata={"title": "Blue whale", "year": 2021}),
    SearchableItem(item_id="krill", content="Small animals of the Southern Ocean.", metadata={"title": "Krill", "year": 2019}),
    SearchableItem(item_id="fox", content="It hunts lemmings in the snow.", metadata={"title": "Arctic fox", "year": 2021}),
]
queries = [Query(query_id="q1", text="who eats krill"), Query(query_id="q2", text="animals in the snow")]
gold = [Gold(query_id="q1", relevance={"whale": 1}), Gold(query_id="q2", relevance={"fox": 1})]
step = AgentStep(kind="search", query="large whales", results=("whale", "krill"))
trajectories = [Trajectory(question_id="q1", agent="one", steps=(step,), answer="The blue whale eats krill [whale].")]

lines = [{"id": item.item_id, "content": item.content, **item.metadata} for item in items]
Path("animals.jsonl").write_text("".join(json.dumps(line) + "\\n" for line in lines))
Path("animals.csv").write_text("id;name;text\\n1;Fox;It hunts.\\n")
Path("queries.tsv").write_text("".join(f"{query.query_id}\\t{query.text}\\n" for query in queries))
Path("bm25.trec").write_text("q1 Q0 whale 1 7.5 bm25\\nq2 Q0 krill 1 7.1 bm25\\nq2 Q0 fox 2 6.2 bm25\\n")
Path("benchmark.yaml").write_text('''
searchers: {bm25: {retrievers: [bm25]}, hybrid: {retrievers: [bm25, faiss]}}
corpus: {loader: jsonl, path: animals.jsonl}
queries: {loader: topics, path: queries.tsv, qrels: qrels.txt}
index: index
''')
Path("qrels.txt").write_text("q1 0 whale 1\\nq2 0 fox 1\\n")
"""
"""What every example finds: three items, two queries, their gold, what an agent did; files of them, of a run, a benchmark."""


def namespace(example: str, module: str, package: str, setup: str = "") -> dict[str, object]:
    """The names of an example: those of ``SETUP`` and ``setup``, of ``nlp_retrieval``, and of its own package and module."""
    names: dict[str, object] = {"__name__": "example"}
    exec(SETUP + setup, names)
    used = set(re.findall(r"\w+", example))
    for exporting in ("nlp_retrieval", package):
        names |= {name: getattr(import_module(exporting), name) for name in modules_of(exporting).keys() & used}
    own = vars(import_module(module))
    return names | {name: own[name] for name in own.keys() & used if not name.startswith("_") and name not in names}


def wants_example(name: str, value: object) -> bool:
    """Whether a name is a class or a function that somebody calls.

    An error or a warning is caught and not made, a protocol or a base class with abstract methods is shown by what implements
    it, and the docstring of a signature of DSPy is a prompt.
    """
    if inspect.isclass(value):
        signature = any(base.__module__.startswith("dspy") for base in value.__mro__)
        protocol = getattr(value, "_is_protocol", False)
        return not (issubclass(value, BaseException) or inspect.isabstract(value) or protocol or signature)
    return inspect.isfunction(value) and value.__name__ == name


def public(package: str) -> list[str]:
    """The names of a package that need an example, each after its module."""
    found = []
    for name, module in modules_of(package).items():
        value = inspect.unwrap(getattr(import_module(module), name)) if name != "__version__" else None
        if wants_example(name, value):
            found.append(f"{module}:{name}")
    return found


@dataclass(frozen=True)
class Checked:
    """What is wrong with the examples of a package."""

    without: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def check_examples(package: str, folder: Path, monkeypatch: pytest.MonkeyPatch, setup: str = "") -> Checked:
    """Run the examples of all public names of a package, each in a folder of its own; a warning is an error."""
    monkeypatch.setenv("OPENAI_API_KEY", "not a key")
    checked = Checked()
    for number, name in enumerate(public(package)):
        module, _, attribute = name.partition(":")
        text = inspect.getdoc(inspect.unwrap(getattr(import_module(module), attribute))) or ""
        examples = doctest.DocTestParser().get_examples(text)
        if not examples:
            checked.without.append(name)
            continue
        (folder / str(number)).mkdir()
        monkeypatch.chdir(folder / str(number))
        test = doctest.DocTest(examples, namespace(text, module, package, setup), name, None, 0, text)
        said: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
        checked.wrong.extend(["".join(said)] if said else [])
    return checked
