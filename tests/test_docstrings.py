"""Every public class and function has an example in its docstring, and the examples do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from docstring_examples import check_examples

from nlp_retrieval._public_names import ROOMS


@pytest.mark.parametrize("package", ["nlp_retrieval", *(f"nlp_retrieval.{room}" for room in ROOMS)])
def test_the_examples_of_every_public_name_do_what_they_say(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = check_examples(package, tmp_path, monkeypatch)
    assert checked.without == [], "each needs an example in its docstring"
    assert checked.wrong == []
