"""What is published holds all that the package needs, and nothing else."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path

import nlp_retrieval

from .conftest import ROOT


def package_files() -> set[str]:
    """Every file of the package, as it stands in the repository."""
    files = (path for path in (ROOT / "nlp_retrieval").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_the_wheel_is_the_package_and_its_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    metadata = f"nlp_retrieval-{nlp_retrieval.__version__}.dist-info/"
    assert {name for name in names if not name.startswith(metadata)} == package_files()
    assert "nlp_retrieval/py.typed" in names
    assert metadata + "licenses/LICENSE" in names
    assert len(names) == len(set(names))


def test_the_sdist_has_all_that_the_wheel_is_built_from(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    assert sdist.name == f"nlp_retrieval-{nlp_retrieval.__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    assert package_files() | {"LICENSE", "README.md", "pyproject.toml", "setup.cfg"} <= names
    assert [name for name in names if name.startswith(("tests/", "bench/", "docs/"))] == []


def test_what_is_installed_searches(python_of_a_user: Path, tmp_path: Path) -> None:
    script = (
        "from importlib.resources import files\n"
        "import nlp_retrieval\n"
        "from nlp_retrieval import BeirLoader, Searcher\n"
        "searcher = Searcher(['bm25'])\n"
        "searcher.index(BeirLoader(files('nlp_retrieval.demo') / 'corpus.jsonl'), 'index')\n"
        "hit = searcher.search('Who discovered the dwarf planet Pluto?', k=1)[0][0]\n"
        "print(nlp_retrieval.__file__, hit.item.title, sep='\\n')\n"
    )
    done = subprocess.run([python_of_a_user, "-I", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    place, title = done.stdout.splitlines()
    assert Path(place).is_relative_to(python_of_a_user.parents[1])
    assert title == "Pluto"
