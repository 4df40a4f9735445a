"""A component's identity names the bytes that it opens, whatever becomes of the folder before, meanwhile or afterwards."""

from __future__ import annotations

import os
from pathlib import Path
from weakref import WeakValueDictionary

import pytest
from named_models import NAMED, PEOPLE, Named
from soaking import mostly_soaked

from nlp_retrieval.encoders import models
from nlp_retrieval.errors import ModelError


@pytest.fixture(params=mostly_soaked(list(NAMED), ["encoder", "pylate", "splade"]))
def kind(request: pytest.FixtureRequest) -> Named:
    return NAMED[request.param]


@pytest.fixture
def folder(kind: Named, tmp_path: Path) -> Path:
    kind.save(tmp_path / "model", 0)
    return tmp_path / "model"


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests may hold an open model of the same bytes, which would be shared."""
    monkeypatch.setattr(models, "_open", WeakValueDictionary())


def mutated(content: bytes) -> bytes:
    place = len(content) * 2 // 3
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_no_file_can_change_and_leave_the_identity_but_not_the_result(kind: Named, folder: Path) -> None:
    for name, content in PEOPLE.items():
        if not (folder / name).exists():
            (folder / name).write_bytes(content)
    first = kind.component(folder)
    identity, result = first.index_identity(), kind.result(first)
    files = [Path(at) / name for at, _, names in os.walk(folder, followlinks=True) for name in names]
    covered = set()
    for file in files:
        before = file.read_bytes()
        if not before:
            continue
        file.write_bytes(mutated(before))
        again = kind.component(folder)
        try:
            changed = again.index_identity() != identity
        except ModelError:
            changed = True
        assert changed or kind.result(again) == result, file
        covered |= {file.relative_to(folder).as_posix()} if changed else set()
        file.write_bytes(before)
    everything = {file.relative_to(folder).as_posix() for file in files if file.stat().st_size}
    graph_may_read_them = (folder / "model.onnx").exists()
    assert everything - covered == (set() if graph_may_read_them else set(PEOPLE))
    assert kind.component(folder).index_identity() == identity
