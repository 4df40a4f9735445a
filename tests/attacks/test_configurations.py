"""A configuration holds names and values: nothing in it is imported, made, or opened without end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from benchmarks.small_benchmark import collection, configuration

from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.cli.console import parse_options
from nlp_retrieval.core.components.registry import build, kinds
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.errors import ConfigurationError

from .planting import in_child

NEVER = "this"
"""A module that says something when it is imported, and that nobody imports."""

IMPORT_PATHS = ("this.s", "this:s", "nlp_retrieval.retrievers.bm25.retriever:Bm25Retriever", "../../this", "__class__")
MARKS = ("_target_", "class_path", "__class__", "lc", "py/object")
TEMPLATES = ("{{ 7 * 7 }}", "${oc.env:HOME}", "$(mkdir ran)", "{0.__class__}", "%(home)s")


def objects(folder: Path) -> dict[str, str]:
    """Tags that make ``folder`` where they are obeyed, or import a module."""
    return {
        "apply": f"!!python/object/apply:os.mkdir ['{folder}']",
        "name": "!!python/name:this.s ''",
        "object": "!!python/object:this.s {}",
        "long form": f"!<tag:yaml.org,2002:python/object/apply:os.mkdir> ['{folder}']",
        "own": "!encoder {name: x}",
        "set": "!!set {a, b}",
    }


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(text, "utf-8")
    return path


def test_a_tag_is_an_error(tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests) -> None:
    for tag in objects(Path()):
        with subtests.test(tag=tag):
            tmp_path = tmp_path_factory.mktemp("case")
            planted = objects(tmp_path / "ran")[tag]
            for text in (f"searchers: {planted}", f"{{k: [1, {planted}]}}", f"? {planted}\n: 1"):
                with pytest.raises(ConfigurationError, match=r"line 1: the tag '.*' is refused"):
                    read_yaml(written(tmp_path, text))
                assert not (tmp_path / "ran").exists()
                assert NEVER not in sys.modules
            with pytest.raises(ConfigurationError, match="is refused"):
                parse_options([f"x=[{planted}]"])


def test_a_name_that_is_an_import_path_is_no_component(subtests: pytest.Subtests) -> None:
    for kind in kinds():
        for name in IMPORT_PATHS:
            with subtests.test(kind=kind, name=name):
                if kind in (
                    "encoders",
                    "language_models",
                ):  # there a name may be that of a model, which is looked for among models
                    settings: object = {"name": name, "_target_": "os.mkdir"}
                else:
                    settings = name
                with pytest.raises(ConfigurationError):
                    build(kind, settings)  # type: ignore[arg-type]
                assert NEVER not in sys.modules


def test_keys_that_other_tools_instantiate_are_unknown_parameters(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for key in MARKS:
        with subtests.test(key=key):
            tmp_path = tmp_path_factory.mktemp("case")
            path = configuration(tmp_path, collection(tmp_path / "data"))
            settings = yaml.safe_load(path.read_text())
            settings["searchers"]["bm25"]["retrievers"][0][key] = "os.system"
            with pytest.raises(ConfigurationError, match="has no parameter"):
                read_benchmark_config(written(tmp_path, json.dumps(settings)))


def test_templates_are_plain_text(tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests) -> None:
    """CVE-2024-41950: a template in a configuration that ran."""
    for template in TEMPLATES:
        with subtests.test(template=template):
            tmp_path = tmp_path_factory.mktemp("case")
            assert read_yaml(written(tmp_path, json.dumps({"x": template}))) == {"x": template}


def laughs(levels: int) -> str:
    """A list of ten, each of them the list before it: 10 ** levels values in a few hundred characters."""
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merges(levels: int) -> str:
    """The same by merge keys, which the loader itself writes out."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("bomb", [laughs, merges])
def test_a_bomb_is_refused_before_it_is_opened(bomb: object, tmp_path: Path) -> None:
    path = written(tmp_path, bomb(30))  # type: ignore[operator]
    done = in_child(
        "import sys\nfrom nlp_retrieval.core.files.yaml_text import read_yaml\n"
        "from nlp_retrieval.errors import ConfigurationError\n"
        "try:\n    read_yaml(sys.argv[1])\nexcept ConfigurationError as error:\n    print(error)",
        str(path),
    )
    assert done.returncode == 0, done.stderr
    assert "with its aliases written out this is more than 1,000,000 values" in done.stdout


def test_aliases_within_reason_are_read(tmp_path: Path) -> None:
    text = "model: &model {name: x, size: 3}\nuses: [*model, *model]\nmore: {<<: *model, size: 4}"
    assert read_yaml(written(tmp_path, text)) == yaml.safe_load(text)
    assert read_yaml(written(tmp_path, laughs(4))) == yaml.safe_load(laughs(4))


def test_what_is_no_reasonable_configuration_is_one_error(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for text, said in {
        "of itself": ("a: &a [*a]", "levels inside each other"),
        "key of itself": ("&a {*a : 1}", "levels inside each other"),
        "lists": ("a: " + "[" * 2000, "levels inside each other"),
        "mappings": ("a: " + "{b: " * 101 + "}" * 101, "levels inside each other"),
        "long": ("#" * (2**20 + 1), "longer than 1 MiB"),
        "digits": ("a: " + "9" * 5000, "or too large"),
        "overflow": ("a: 1.0e+999", "or too large"),
        "truth": ("a: !!bool perhaps", "is no bool"),
        "twice": ("a: 1\na: 2", "appears twice"),
    }.values():
        with subtests.test(text=text, said=said):
            tmp_path = tmp_path_factory.mktemp("case")
            with pytest.raises(ConfigurationError, match=said):
                read_yaml(written(tmp_path, text))


def test_dates_and_constants_of_javascript_are_text(tmp_path: Path) -> None:
    assert read_yaml(written(tmp_path, "a: 2001-01-01\nb: 2001-99-99")) == {"a": "2001-01-01", "b": "2001-99-99"}
    assert parse_options(["a=[2001-01-01]", "b=NaN", "c=Infinity"]) == {"a": ["2001-01-01"], "b": "NaN", "c": "Infinity"}
