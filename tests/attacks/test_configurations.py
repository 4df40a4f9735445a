"""A configuration holds names and values: nothing in it is imported, made, or opened without end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from benchmarks.small_benchmark import collection, configuration

from nlp_retrieval import RetrievalError
from nlp_retrieval.benchmarks.settings import read_benchmark_config
from nlp_retrieval.cli.console import parse_options
from nlp_retrieval.core.components.registry import build, kinds
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.errors import ConfigurationError

from .conftest import Tally
from .planting import in_child

FAMILY = "configurations: tags, import paths, aliases"
NEVER = "this"
"""A module that says something when it is imported, and that nobody imports."""

IMPORT_PATHS = (
    "this", "this.s", "this:s", "os.system", "nlp_retrieval.retrievers.bm25.retriever:Bm25Retriever", "builtins.eval",
    "../../this", "__class__",
)  # fmt: skip
MARKS = ("_target_", "class_path", "init_args", "__class__", "lc", "type", "py/object", "!!python/name:os.system")
TEMPLATES = ("{{ 7 * 7 }}", "${oc.env:HOME}", "${HOME}", "$(mkdir ran)", "{0.__class__}", "%(home)s", "`mkdir ran`")


def objects(folder: Path) -> dict[str, str]:
    """Tags that make ``folder`` where they are obeyed, or import a module."""
    return {
        "apply": f"!!python/object/apply:os.mkdir ['{folder}']",
        "new": f"!!python/object/new:os.mkdir ['{folder}']",
        "name": "!!python/name:this.s ''",
        "module": "!!python/module:this ''",
        "object": "!!python/object:this.s {}",
        "long form": f"!<tag:yaml.org,2002:python/object/apply:os.mkdir> ['{folder}']",
        "tuple": "!!python/tuple [1, 2]",
        "own": "!encoder {name: x}",
        "binary": "!!binary aGk=",
        "set": "!!set {a, b}",
        "omap": "!!omap [a: 1]",
        "timestamp": "!!timestamp 2001-01-01",
    }


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(text, "utf-8")
    return path


def test_tags_are_obeyed_by_a_loader_that_is_not_safe(tmp_path: Path) -> None:
    yaml.unsafe_load(f"x: {objects(tmp_path / 'ran')['apply']}")
    assert (tmp_path / "ran").is_dir()


@pytest.mark.parametrize("tag", objects(Path()))
def test_a_tag_is_an_error(tag: str, tmp_path: Path, tally: Tally) -> None:
    planted = objects(tmp_path / "ran")[tag]
    for text in (f"searchers: {planted}", f"{{k: [1, {planted}]}}", f"? {planted}\n: 1"):
        with tally(FAMILY):
            with pytest.raises(ConfigurationError, match=r"line 1: the tag '.*' is refused"):
                read_yaml(written(tmp_path, text))
            assert not (tmp_path / "ran").exists()
            assert NEVER not in sys.modules
    with tally(FAMILY), pytest.raises(ConfigurationError, match="is refused"):
        parse_options([f"x=[{planted}]"])


@pytest.mark.parametrize("name", IMPORT_PATHS)
@pytest.mark.parametrize("kind", kinds())
def test_a_name_that_is_an_import_path_is_no_component(kind: str, name: str, tally: Tally) -> None:
    if kind in ("encoders", "language_models"):  # there a name may be that of a model, which is looked for among models
        settings: object = {"name": name, "_target_": "os.mkdir"}
    else:
        settings = name
    with tally(FAMILY):
        with pytest.raises(ConfigurationError):
            build(kind, settings)  # type: ignore[arg-type]
        assert NEVER not in sys.modules


def test_an_import_path_is_obeyed_where_names_are_imported() -> None:
    done = in_child(
        "import importlib, sys; path = 'this.s'; module, _, name = path.rpartition('.');"
        "getattr(importlib.import_module(module), name)"
    )
    assert "Zen of Python" in done.stdout


@pytest.mark.parametrize("key", MARKS)
def test_keys_that_other_tools_instantiate_are_unknown_parameters(key: str, tmp_path: Path, tally: Tally) -> None:
    path = configuration(tmp_path, collection(tmp_path / "data"))
    settings = yaml.safe_load(path.read_text())
    settings["searchers"]["bm25"]["retrievers"][0][key] = "os.system"
    with tally(FAMILY), pytest.raises(ConfigurationError, match="has no parameter"):
        read_benchmark_config(written(tmp_path, json.dumps(settings)))


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_are_plain_text(template: str, tmp_path: Path, tally: Tally) -> None:
    """CVE-2024-41950: a template in a configuration that ran."""
    with tally(FAMILY):
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


def test_a_bomb_goes_off_where_what_was_read_is_written_out() -> None:
    done = in_child("import json, sys, yaml; json.dumps(yaml.safe_load(sys.argv[1]))", laughs(9), seconds=1, megabytes=1000)
    assert done.returncode != 0
    done = in_child("import sys, yaml; yaml.safe_load(sys.argv[1])", merges(9), seconds=1, megabytes=1000)
    assert done.returncode != 0


@pytest.mark.parametrize("bomb", [laughs, merges])
def test_a_bomb_is_refused_before_it_is_opened(bomb: object, tmp_path: Path, tally: Tally) -> None:
    path = written(tmp_path, bomb(30))  # type: ignore[operator]
    with tally(FAMILY):
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


@pytest.mark.parametrize(
    ("text", "said"),
    {
        "of itself": ("a: &a [*a]", "refers to a value that contains it"),
        "of itself, deeper": ("a: &a {b: [{c: *a}]}", "refers to a value that contains it"),
        "key of itself": ("&a {*a : 1}", "refers to a value that contains it"),
        "lists": ("a: " + "[" * 2000, "levels inside each other"),
        "closed": ("a: " + "[" * 1500 + "]" * 1500, "levels inside each other"),
        "mappings": ("a: " + "{b: " * 101 + "}" * 101, "levels inside each other"),
        "long": ("#" * (2**20 + 1), "longer than 1 MiB"),
        "digits": ("a: " + "9" * 5000, "not a finite number"),
        "overflow": ("a: 1.0e+999", "not a finite number"),
        "truth": ("a: !!bool perhaps", "is no bool"),
        "twice": ("a: 1\na: 2", "appears twice"),
    }.values(),
)
def test_what_is_no_reasonable_configuration_is_one_error(text: str, said: str, tmp_path: Path, tally: Tally) -> None:
    with tally(FAMILY), pytest.raises(ConfigurationError, match=said):
        read_yaml(written(tmp_path, text))


@pytest.mark.parametrize("value", ["[&a [*a]]", "[2001-01-01", "[" * 1500 + "]" * 1500, "[" + "9" * 5000 + "]"])
def test_an_option_of_the_command_line_is_read_as_strictly(value: str, tally: Tally) -> None:
    with tally(FAMILY), pytest.raises(ConfigurationError):
        parse_options([f"x={value}"])


def test_dates_and_constants_of_javascript_are_text(tmp_path: Path) -> None:
    assert read_yaml(written(tmp_path, "a: 2001-01-01\nb: 2001-99-99")) == {"a": "2001-01-01", "b": "2001-99-99"}
    assert parse_options(["a=[2001-01-01]", "b=NaN", "c=Infinity"]) == {"a": ["2001-01-01"], "b": "NaN", "c": "Infinity"}


def test_the_components_of_a_foreign_index_are_built_by_name_alone(tmp_path: Path, tally: Tally) -> None:
    """``search`` without ``--retriever`` builds what the manifest names."""
    for record in ({"name": "this.s"}, {"name": "bm25", "_target_": "os.mkdir"}, {"name": ["bm25"]}, "os.system"):
        with tally(FAMILY), pytest.raises(RetrievalError):
            build("retrievers", record)  # type: ignore[arg-type]
