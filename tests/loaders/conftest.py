"""Writing small source files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write text, bytes or rows (as JSON lines) to a file; a name that ends with .gz is compressed."""

    def write(name: str, content: str | bytes | Iterable[object]) -> Path:
        if not isinstance(content, (str, bytes)):
            content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
        raw = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return write
