"""A backup is taken by the commands of the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from nlp_retrieval import Bm25Retriever, Searcher

from .running import make_index

PAGE = (Path(__file__).parents[2] / "docs" / "SERVICE.md").read_text("utf-8")


def test_an_index_is_backed_up(tmp_path):
    make_index(tmp_path / "indexes" / "wiki")
    block, *_ = re.findall(r"```console\n(.*?)```", PAGE.partition("## Backup")[2], re.DOTALL)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["sh", "-ec", block.replace("$ ", "")], cwd=tmp_path, env=os.environ | {"PATH": path}, check=True)
    assert len(Searcher([Bm25Retriever()]).open(tmp_path / "backup" / "wiki").search("fox", 100)[0]) == 30
