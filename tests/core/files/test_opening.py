"""Opening files: what is not a regular file is refused where one is expected, and a process without descriptors says so."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nlp_retrieval import Bm25Retriever, JsonlLoader, Searcher
from nlp_retrieval.core import write_output
from nlp_retrieval.core.files.columns import mapped
from nlp_retrieval.core.files.opening import open_regular
from nlp_retrieval.errors import IndexDamagedError

from ..engines import documents


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.mkdir()])
def test_a_pipe_a_device_and_a_folder_are_no_regular_files(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "file")
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(tmp_path / "file")


ACTIONS: dict[str, Callable[[Path], object]] = {
    "search": lambda folder: Searcher([Bm25Retriever()]).open(folder / "index").search("text"),
    "jsonl": lambda folder: JsonlLoader(folder / "file").load(),
    "map": lambda folder: mapped(folder / "column.npy", np.int64),
    "write": lambda folder: write_output(folder / "out", b""),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_process_without_descriptors_says_so_and_blames_no_file(action: str, tmp_path: Path) -> None:
    Searcher([Bm25Retriever()]).index(documents(["a text", "another"]), tmp_path / "index")
    np.save(tmp_path / "column.npy", np.arange(3))
    (tmp_path / "file").write_text('{"id": "1", "content": "a"}')
    told = tmp_path / "told"
    with told.open("w") as file:
        if (child := os.fork()) == 0:
            try:
                resource.setrlimit(
                    resource.RLIMIT_NOFILE, (max(int(entry.name) for entry in Path("/proc/self/fd").iterdir()), 4096)
                )
                taken = []
                while True:
                    try:
                        taken.append(os.open("/dev/null", os.O_RDONLY))
                    except OSError:
                        break
                ACTIONS[action](tmp_path)
            except Exception as error:
                file.write(str(error))
                file.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    said = told.read_text()
    assert "too many files are open" in said.lower() or "too many open files" in said.lower()
    assert "ulimit -n" in said
    assert not any(wrong in said for wrong in ("check the path", "choose another", "index again", "restore"))


def test_a_column_in_another_form_is_damage_and_no_warning(tmp_path: Path, subtests: pytest.Subtests) -> None:
    path = tmp_path / "column.npy"
    for order, shape, said in [
        ("True", "(2, 3)", "shape .2, 3. by column, not <i8 of any x any"),
        ("False", "(4611686018427387904, 4)", "is damaged"),
        ("False", "(2L, 3)", "Python 2"),
    ]:
        header = f"{{'descr': '<i8', 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117) + "\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(48))
        with subtests.test(shape=shape), pytest.raises(IndexDamagedError, match=said):
            mapped(path, np.int64, (None, None))
