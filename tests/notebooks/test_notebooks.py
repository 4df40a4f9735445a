"""The notebooks run from an empty folder, cell by cell, and show what they speak of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .shells import own_shell

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def ran(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], list[object]]:
    """Run a notebook; return its names, and what its cells end with."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    shell = own_shell(tmp_path / "ipython")
    (file,) = [one for one in NOTEBOOKS if one.stem == name]
    ends = []
    for cell in json.loads(file.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            done = shell.run_cell("".join(cell["source"]))
            done.raise_error()
            ends.append(done.result)
            assert done.result is None or shell.display_formatter.format(done.result)[0]["text/plain"]
    return shell.user_ns, ends


def test_a_first_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names, ends = ran("01_first_search", tmp_path, monkeypatch)
    assert [hits[0].item.title for hits in names["results"]] == ["Pluto", "A Kestrel for a Knave"]
    assert ends[-1][0] == "Pluto"  # type: ignore[index]
    assert "retrievers:\n- name: bm25\n" in capsys.readouterr().out


def test_compose_and_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names, ends = ran("02_compose_and_compare", tmp_path, monkeypatch)
    table = names["table"]
    assert list(table.index) == ["bm25", "clauses", "reranked", "linked"]
    assert table.loc["linked", "perfect_recall@20"] > table.loc["bm25", "perfect_recall@20"]
    assert "linked" in capsys.readouterr().out
    assert Path(str(ends[-1])).stat().st_size > 10_000


def test_multi_hop_with_explanations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names, _ = ran("03_multi_hop_with_explanations", tmp_path, monkeypatch)
    titles = [hit.item.title for hit in names["results"]]
    assert {"Pluto", "Clyde Tombaugh"} <= set(titles[:3])
    chain = names["explanations"][titles.index("Clyde Tombaugh")]["links"]
    assert [step.source.title for step in chain.steps] == ["Pluto"]
    assert "Clyde Tombaugh: 1 step(s) from Pluto" in capsys.readouterr().out


def test_your_own_component(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names, _ = ran("04_your_own_component", tmp_path, monkeypatch)
    assert "TitleInQuery: min_length='three': Input should be a valid integer" in capsys.readouterr().out
    assert [result.name for result in names["run"].report.configurations] == ["bm25", "titles"]
