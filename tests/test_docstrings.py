"""Every public class and function has an example in its docstring, and the examples do what they say."""

from __future__ import annotations

import doctest
import inspect
import warnings
from importlib import import_module
from pathlib import Path

import pytest
from docstring_examples import OPTIONS, namespace

from nlp_retrieval._public_names import modules_of

ROOMS = (
    *("benchmarks", "core", "encoders", "evaluation", "lm", "loaders", "processors", "reports", "rerankers", "retrievers"),
    "text",
)
PACKAGES = ("nlp_retrieval", *(f"nlp_retrieval.{room}" for room in ROOMS))
"""The packages whose names all have an example."""


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
    found = []
    for name, module in modules_of(package).items():
        value = inspect.unwrap(getattr(import_module(module), name)) if name != "__version__" else None
        if wants_example(name, value):
            found.append(f"{module}:{name}")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_the_examples_of_every_public_name_do_what_they_say(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not a key")
    without, wrong = [], []
    for number, name in enumerate(public(package)):
        module, _, attribute = name.partition(":")
        text = inspect.getdoc(inspect.unwrap(getattr(import_module(module), attribute))) or ""
        examples = doctest.DocTestParser().get_examples(text)
        if not examples:
            without.append(name)
            continue
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        test = doctest.DocTest(examples, namespace(text, module), name, None, 0, text)
        said: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
        wrong += ["".join(said)] if said else []
    assert without == [], "each needs an example in its docstring"
    assert wrong == []
