"""A configuration holds names and values: nothing in it is imported, made, or opened without end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from nlp_retrieval.cli.console import parse_options
from nlp_retrieval.core.components.registry import build, kinds
from nlp_retrieval.core.files.yaml_text import read_yaml
from nlp_retrieval.errors import ConfigurationError

from .planting import in_child

NEVER = "this"
"""A module that says something when it is imported, and that nobody imports."""

IMPORT_PATHS = ("this.s", "this:s", "nlp_retrieval.retrievers.bm25.retriever:Bm25Retriever", "../../this", "__class__")


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


def test_a_tag_is_an_error(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for tag, planted in objects(tmp_path / "ran").items():
        with subtests.test(tag=tag):
            for text in (f"searchers: {planted}", f"{{k: [1, {planted}]}}", f"? {planted}\n: 1"):
                with pytest.raises(ConfigurationError, match=r"line 1: the tag '.*' is refused"):
                    read_yaml(written(tmp_path, text))
            with pytest.raises(ConfigurationError, match="is refused"):
                parse_options([f"x=[{planted}]"])
            assert not (tmp_path / "ran").exists()
            assert NEVER not in sys.modules


def test_a_name_that_is_an_import_path_is_no_component(subtests: pytest.Subtests) -> None:
    for kind in kinds():
        for name in IMPORT_PATHS:
            of_models = kind in ("encoders", "language_models")  # where any name may be that of a model
            settings: Any = {"name": name, "_target_": "os.mkdir"} if of_models else name
            with subtests.test(kind=kind, name=name), pytest.raises(ConfigurationError):
                build(kind, settings)
            assert NEVER not in sys.modules


def laughs(levels: int) -> str:
    """A list of ten, each of them the list before it: 10 ** levels values in a few hundred characters."""
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_a_bomb_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    path = written(tmp_path, laughs(30))
    done = in_child(
        "import sys\nfrom nlp_retrieval.core.files.yaml_text import read_yaml\n"
        "from nlp_retrieval.errors import ConfigurationError\n"
        "try:\n    read_yaml(sys.argv[1])\nexcept ConfigurationError as error:\n    print(error)",
        str(path),
    )
    assert done.returncode == 0, done.stderr
    assert "with its aliases written out this is more than 1,000,000 values" in done.stdout
