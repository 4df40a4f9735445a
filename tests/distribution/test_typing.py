"""Types as a user has them: ``py.typed`` is in the wheel, and mypy and pyright take the package's word for the public names.

They check two programs against the installed wheel: nothing is found in the right one, and in the wrong one each line that is
said to be wrong, and no other.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAMS = ("right.py", "wrong.py")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Both programs in a folder of their own, without the settings of this repository."""
    for name in PROGRAMS:
        shutil.copy(HERE / name, tmp_path / name)
    return tmp_path


WRONG = [("wrong.py", n) for n, line in enumerate((HERE / "wrong.py").read_text().splitlines(), 1) if line.endswith("# wrong")]


def test_pyright_finds_what_is_wrong_and_nothing_else(programs: Path, python_of_a_user: Path) -> None:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", str(python_of_a_user)]
    offline = {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | offline
    done = subprocess.run([*command, *PROGRAMS], cwd=programs, env=alone, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    told = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    found = {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in told}
    assert sorted(found) == WRONG, done.stdout
