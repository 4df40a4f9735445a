"""Every block of the documents is run as it is written, and what a page says is printed is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from soaking import mostly_soaked

from .blocks import LANGUAGES, PAGES, ROOT, Block, blocks, lines_of, read_settings, run_python, run_script
from .worlds import world

FOUND = {path.relative_to(ROOT).as_posix(): blocks(path.read_text("utf-8")) for path in PAGES}
ELSEWHERE = {
    "docs/COMPARE.md": LANGUAGES,  # tests/test_compare_page.py, with the data frames
    "docs/POLICY.md": ("console",),  # tests/systems/policy/test_ask.py; it takes a minute or two
    "docs/OWN_COMPONENT.md": ("python",),  # tests/conformance/test_plugin_page.py, test_documentation.py
}


def run_here(page: str) -> list[Block]:
    """The blocks of a page that are run, and those that may say what they print."""
    elsewhere = ELSEWHERE.get(page, ())
    return [block for block in FOUND[page] if block.language not in elsewhere and not block.not_run]


RUN = [page for page in FOUND if any(block.language in LANGUAGES for block in run_here(page))]
LONG = {f"docs/{name}.md" for name in ("ENCODERS", "MULTIHOP", "INTEGRATIONS", "SERVICE", "STORES")}
"""Pages that load a model, start a server or distil a vocabulary."""


def without_numbers(text: str) -> list[str]:
    """Lines of what a command prints, without what depends on the machine."""
    return [re.sub(r"\d[\d.,]*", "0", line) for line in lines_of(text)]


@pytest.mark.parametrize("page", mostly_soaked(RUN, set(RUN) - LONG))
def test_the_blocks_of_a_page_run_as_written(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    names: dict[str, object] = {"__name__": "document"}
    printed, before = "", ""
    with world(Path(page).name, monkeypatch) as changed:
        for block in run_here(page):
            content = changed(block.content)
            if block.language == "python":
                printed = run_python(content, names)
            elif block.language in ("console", "sh"):
                run_script(content, monkeypatch)
                printed = capsys.readouterr().out
            elif block.language == "yaml":
                read_settings(content, folder)
            elif block.language == "text" and before == "python":
                assert printed == content
            elif block.language == "text" and before in ("console", "sh"):
                assert [line for line in without_numbers(content) if line not in without_numbers(printed)] == []
            before = block.language


def test_every_name_of_another_description_has_an_example_that_runs() -> None:
    examples = [block for block in FOUND["docs/NAMES.md"] if block.language == "python" and "import" not in block.content]
    page = (ROOT / "docs" / "NAMES.md").read_text("utf-8")
    rows = re.findall(r"^\| (?!name |---)", page, re.MULTILINE)
    assert len(examples) == len(re.findall("^## ", page, re.MULTILINE)) == 5
    assert sum(len(block.content.splitlines()) for block in examples) == len(rows) > 25
    assert len(page.split()) <= 980
