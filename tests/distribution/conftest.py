"""The wheel and the sdist, built once, and an environment that has the wheel as a user has it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE")


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both, built from a copy, because a build writes beside its sources."""
    copy = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "nlp_retrieval", copy / "nlp_retrieval", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(copy / "dist"), str(copy)]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return copy / "dist"


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def python_of_a_user(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment whose ``nlp_retrieval`` is that of the wheel; what it depends on is this environment's."""
    folder = tmp_path_factory.mktemp("user")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    packages = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python
