"""What an attacker does: objects that run something when they are unpickled, and indexes forged so that every checksum fits.

A forged index shows what protects when checksums do not: whoever hands out an index also wrote its manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


class MakesFolder:
    """Unpickled, it makes a folder, which shows that the code ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder),)


def pickled(ran: Path) -> bytes:
    """A pickle that makes the folder ``ran`` when it is loaded."""
    return pickle.dumps(MakesFolder(ran))


def object_array(path: Path, ran: Path) -> None:
    """Write a ``.npy`` file of one object that makes the folder ``ran`` when it is loaded."""
    with path.open("wb") as file:
        np.save(file, np.array([MakesFolder(ran)], dtype=object), allow_pickle=True)


def forge(index: Path) -> None:
    """Give an index the checksums of what its files hold now, so that its manifest vouches for them."""
    content = json.loads((index / "manifest.json").read_bytes())
    for record in _folders(content):
        files = record["files"]
        for name in files:
            written = (index / record["folder"] / name).read_bytes()
            files[name] = {"bytes": len(written), "sha256": hashlib.sha256(written).hexdigest()}
    write_forged(index, content)


def write_forged(index: Path, content: dict[str, Any]) -> None:
    """Write a manifest with a checksum that fits."""
    content = {key: value for key, value in content.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    content["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    (index / "manifest.json").write_text(json.dumps(content), "utf-8")


def _folders(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if {"folder", "files"} <= value.keys():
            yield value
        for inner in value.values():
            yield from _folders(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _folders(inner)


def in_child(code: str, *words: str, seconds: int = 5, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python code with words and an input in a process that the kernel kills after so many seconds of CPU time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run(  # the wall clock is only there for a process that sleeps
        [sys.executable, "-c", code, *words],
        input=given,
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
        timeout=300 + 20 * seconds,
    )
