"""Whatever befalls a file of an index, verification names it; another size is told of at opening."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.small_benchmark import benchmarker
from soaking import Figures

from nlp_retrieval import Searcher, read_run_folder, verify_index, write_run_files
from nlp_retrieval.errors import IndexDamagedError, IndexMissingError, SourceError

from .collection import MANIFEST, IndexFile, files_of, retrievers
from .damages import Damage, damaged, flips, structural


def every_damage(index: Path, file: IndexFile, effort: int) -> list[Damage]:
    path = index / file.path
    others = [index / other.path for other in files_of(index)]
    return structural(path, others, effort) + flips(path.stat().st_size, 2 * effort, seed=len(file.path))


def searcher_for(file: IndexFile) -> Searcher:
    return Searcher([retrievers().get(file.owner, retrievers()["bm25"])])


def named(message: str) -> str:
    return message.split(" ", maxsplit=1)[0]


def test_damage_is_named(index: Path, effort: int, figures: Figures) -> None:
    """The items and two engines in the short run, all of them in the soak."""
    owners = {"items", "bm25", "flat"} if effort == 1 else {"items", *retrievers()}
    check_named([file for file in files_of(index, effort) if file.owner in owners], index, effort, figures)


def check_named(files: list[IndexFile], index: Path, effort: int, figures: Figures) -> None:
    tried = 0
    for file in files:
        path = index / file.path
        for damage in every_damage(index, file, effort):
            wrong = {str(path), str(damage.other)} if damage.kind == "swapped with" else {str(path)}
            size = path.stat().st_size
            with damaged(path, damage, as_if_untouched=True):
                assert {named(message) for message in verify_index(index)} == wrong, f"{file} {damage}"
                if not path.is_file() or path.stat().st_size != size or path.suffix == ".faiss":
                    with pytest.raises(IndexDamagedError, match="replace=True") as caught:
                        searcher_for(file).open(index)
                    assert named(str(caught.value)) in wrong, f"{file} {damage}"
            tried += 1
        assert verify_index(index) == [], f"{path} was not restored"
    figures.add("Damage", "files of an index", tried, tried, "named by verify, and by opening if the size differs")


def test_damage_of_the_manifest_is_noticed(index: Path, effort: int, figures: Figures) -> None:
    file = IndexFile("manifest", MANIFEST)
    caught = 0
    for damage in every_damage(index, file, 20 * effort):
        if damage == Damage("cut", 1):
            continue  # the line's end alone
        with damaged(index / MANIFEST, damage):
            for notice in (verify_index, searcher_for(file).open):
                with pytest.raises((IndexDamagedError, IndexMissingError), match=r"manifest\.json"):
                    notice(index)
            caught += 1
    figures.add("Damage", "manifest.json", caught, caught, "noticed by its own checksum")


def test_a_file_of_a_run_that_was_changed_is_named(tmp_path: Path, effort: int, figures: Figures) -> None:
    write_run_files(benchmarker(tmp_path / "index").run(), tmp_path / "run")
    others = [file for file in (tmp_path / "run").iterdir() if file.is_file()]

    def read() -> str:
        try:
            return repr(read_run_folder(tmp_path / "run").report)
        except SourceError as error:
            return f"refused: {error}"

    healthy = read()
    for name in ("report.json", "per_query.parquet", "hits.parquet", "queries.parquet", "passages.parquet"):
        path = tmp_path / "run" / name
        tried = [*structural(path, others, effort), *flips(path.stat().st_size, 6 * effort, 2)]
        for damage in tried:
            with damaged(path, damage):
                said = read()
            # of the report, the line's end or a digit beyond what a number holds changes nothing
            named = said.startswith("refused: ") and name in said
            assert named or (name == "report.json" and said == healthy), damage
        figures.add("Damage", f"run folder: {name}", len(tried), len(tried), "named; nothing is read from it")
