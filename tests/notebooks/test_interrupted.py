"""A kernel that is interrupted while it indexes: it is said what was kept, and the same cell goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from soaking import mostly_soaked

TESTS = Path(__file__).parents[1]

KERNEL = """
import signal, sys, time
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)  # what was started in the background ignores it

sys.path.insert(0, sys.argv[1])
from notebooks.shells import own_shell

shell = own_shell(Path(sys.argv[2]) / "ipython")
shell.user_ns["folder"] = Path(sys.argv[2])
CELLS = [
    '''
import time
from hashed_words import HashedWords, items_of
from nlp_retrieval import FaissRetriever, SearchableItem, Searcher

encoded, waits = [], [True]

class Slow(HashedWords):
    name = "slow"

    def encode_passages(self, passages):
        encoded.extend(passages)
        if len(encoded) > 2500 and waits:
            waits.clear()
            print("encoding", flush=True)
            time.sleep(120)
        return super().encode_passages(passages)

items = items_of([f"fox number {row}" for row in range(5000)])
old = Searcher(["bm25"])
old.index(items_of(["an old fox"]), folder / "old")
dense = Searcher(["bm25", FaissRetriever(Slow(16))])
''',
    'dense.index(items, folder / PATH, replace=True)',
    'report = dense.index(items, folder / PATH, replace=True); print("resumed", report.resumed)',
    'print("found", len(dense.search("fox", 3)[0]), [hit.item.content for hit in old.search("fox")[0]])',
]
for cell in CELLS:
    shell.run_cell(cell.replace("PATH", repr(sys.argv[3])))
    print("cell done", *sorted(p.name.partition("-")[0] for p in (shell.user_ns["folder"] / sys.argv[3]).glob("*")), flush=True)
"""


@pytest.mark.parametrize("name", mostly_soaked(["new", "old"]))
def test_a_kernel_that_is_interrupted_goes_on(name: str, tmp_path: Path) -> None:
    kernel = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", KERNEL, str(TESTS), str(tmp_path), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
    )
    told = []
    with kernel:
        assert kernel.stdout is not None
        for line in kernel.stdout:
            told.append(line)
            if line == "encoding\n":
                kernel.send_signal(signal.SIGINT)
    assert kernel.returncode == 0
    whole = "".join(told)
    state = "there is no index in PATH yet" if name == "new" else "the index in PATH is as it was before"
    state = state.replace("PATH", str(tmp_path / name))
    kept = "2,048 encoded passages are stored there: the same call continues from them"
    said = f"KeyboardInterrupt: {state}; {kept}"
    assert whole.replace("\n", " ").count(said) == 1, whole
    assert "resumed 2048\n" in whole, whole
    assert "found 3 ['an old fox']\n" in whole
    done = [line.split()[2:] for line in told if line.startswith("cell done")]
    unpublished = [".encoding", ".encoding", ".lock"]  # a file for each batch of 1,024
    assert done[1] == sorted(unpublished + (["bm25", "items", "manifest.json"] if name == "old" else []))
    assert set(done[2]) == {".lock", "bm25", "faiss", "items", "manifest.json"}
