"""Whatever befalls a file of an index is noticed by its checksum, and the file is named: by verification, and by opening.

That holds also where the file was checked before, and has its size and its times again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from soaking import Figures, mostly_soaked

from nlp_retrieval import Searcher, verify_index
from nlp_retrieval.errors import IndexDamagedError, IndexMissingError

from .collection import MANIFEST, QUERIES, IndexFile, files_of, lucene, pages, retrievers
from .damages import Damage, damaged, flips, structural
from .trials import Trials


def every_damage(index: Path, file: IndexFile, effort: int) -> list[Damage]:
    path = index / file.path
    others = [index / other.path for other in files_of(index)]
    return structural(path, others, effort) + flips(path.stat().st_size, 2 * effort, seed=len(file.path))


def searcher_for(file: IndexFile) -> Searcher:
    everything = retrievers() | {"lucene": lucene()}
    return Searcher([everything.get(file.owner, everything["bm25"])])


def named(message: str) -> str:
    return message.split(" ", maxsplit=1)[0]


def test_damage_is_noticed_where_the_file_was_checked_before(index: Path, effort: int, figures: Figures) -> None:
    """The items and two engines in the short run, all of them in the soak."""
    for label in retrievers():
        searcher_for(IndexFile(label, "")).open(index)
    owners = {"items", "bm25", "flat"} if effort == 1 else {"items", *retrievers()}
    files = [file for file in files_of(index, effort) if file.owner in owners]
    assert {file.owner for file in files} == owners
    check_noticed(files, index, searcher_for, effort, figures)


def check_noticed(
    files: list[IndexFile], index: Path, searcher_for: Callable[[IndexFile], Searcher], effort: int, figures: Figures
) -> None:
    """Damage files of an index that were checked before, and check that each is named."""
    tried: Counter[str] = Counter()
    for file in files:
        path = index / file.path
        for damage in every_damage(index, file, effort):
            wrong = {str(path), str(damage.other)} if damage.kind == "swapped with" else {str(path)}
            with damaged(path, damage, as_if_untouched=True):
                assert {named(message) for message in verify_index(index)} == wrong, f"{file} {damage}"
                with pytest.raises(IndexDamagedError, match="replace=True") as caught:
                    searcher_for(file).open(index)
                assert named(str(caught.value)) in wrong, f"{file} {damage}"
            tried[file.owner] += 1
        assert verify_index(index) == [], f"{path} was not restored"
    for owner, count in tried.items():
        figures.add("Damage", f"{owner}: noticed by checksum", count, count, "verified and opened; the file was checked before")


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


def test_a_lucene_file_is_checked_before_lucene_sees_it(lucene_index: Path, effort: int, figures: Figures) -> None:
    files = [file for file in files_of(lucene_index, effort) if file.owner == "lucene"]
    assert {Path(file.path).suffix for file in files} >= {".si", ".cfs", ".cfe"} or len(files) > 5
    tried = 0
    for file in files:
        path = lucene_index / file.path
        for damage in every_damage(lucene_index, file, effort):
            with damaged(path, damage):
                wrong = {str(path), str(damage.other)} if damage.kind == "swapped with" else {str(path)}
                assert {named(message) for message in verify_index(lucene_index)} == wrong, f"{file} {damage}"
                with pytest.raises(IndexDamagedError, match="replace=True") as caught:
                    searcher_for(file).open(lucene_index)
                assert named(str(caught.value)) in wrong, f"{file} {damage}"
            tried += 1
    figures.add("Damage", "lucene: noticed by checksum", tried, tried, f"{len(files)} files")


def test_a_link_to_the_very_content_is_no_damage(index: Path, tmp_path: Path) -> None:
    file = next(index / file.path for file in files_of(index) if file.name == "vectors.npy")
    (tmp_path / "elsewhere.npy").write_bytes(file.read_bytes())
    with damaged(file, Damage("a link to", other=tmp_path / "elsewhere.npy")):
        assert verify_index(index) == []
        assert Searcher([retrievers()["flat"]]).open(index).search(QUERIES[0])[0]


def test_indexing_again_with_replace_heals(tmp_path: Path) -> None:
    searcher = Searcher([retrievers()["bm25"], retrievers()["flat"]])
    searcher.index(pages(), tmp_path)
    before = searcher.search(QUERIES)
    for name in ("rows.npy", "vectors.npy", "items.arrow"):
        file = next(tmp_path / file.path for file in files_of(tmp_path) if file.name == name)
        file.write_bytes(file.read_bytes()[:-3])
        with pytest.raises(IndexDamagedError, match=name.replace(".", r"\.")):
            searcher.index(pages(), tmp_path)
        searcher.index(pages(), tmp_path, replace=True)
        assert verify_index(tmp_path) == []
        assert searcher.search(QUERIES) == before


@pytest.mark.parametrize("damage", mostly_soaked([Damage("cut", 7), Damage("flipped", 2000)]), ids=str)
def test_readers_that_trust_their_input_see_only_what_was_checked(index: Path, checking: Trials, damage: Damage) -> None:
    for file in files_of(index, effort=1):
        path = index / file.path
        if file.owner == "manifest" or path.stat().st_size < 2500:
            continue
        label = file.owner if file.owner != "items" else "bm25"
        assert "refused" not in events(checking, index, label, path)
        with damaged(path, damage, as_if_untouched=True):
            seen = events(checking, index, label, path)
        assert ("opened" in seen) == (damage.kind == "flipped"), f"{path}: one that is too short need not be read"
        assert seen[-1] == "refused"
        assert "read" not in seen, f"{path} was read although it is damaged"


def test_a_file_is_checked_before_it_is_read(index: Path) -> None:
    trials = Trials(believing=False)  # which has checked nothing yet
    seen = {label: trials.run("watch", index=str(index), label=label)["found"] for label in retrievers()}
    trials.close()
    check_order(index, seen)


def check_order(index: Path, seen: dict[str, list[list[str]]]) -> None:
    """Check that every file of an index is opened to be checked before it is read."""
    for file in files_of(index):
        if file.owner != "manifest" and not file.name.endswith(".json"):
            path = str(index / file.path)
            here = [event for event, where in seen[file.owner if file.owner in seen else "bm25"] if where == path]
            assert here[0] == "opened", f"{file}: {here}"
            only_for_updates = file.name.startswith(("links_", "shape"))
            assert "read" in here or only_for_updates, f"{file}: a reader went unseen, so this test would see nothing"


def test_lucene_is_not_asked_to_open_a_damaged_folder(lucene_index: Path, checking: Trials) -> None:
    file = max((file for file in files_of(lucene_index) if file.owner == "lucene"), key=lambda file: len(file.path))
    with damaged(lucene_index / file.path, Damage("flipped", 0, 1)):
        seen = checking.run("watch", index=str(lucene_index), label="lucene")["found"]
    folder = str((lucene_index / file.path).parent)
    assert [event for event, where in seen if event == "read" and where == folder] == []
    assert seen[-1][0] == "refused"
    healthy = checking.run("watch", index=str(lucene_index), label="lucene")["found"]
    assert ["read", folder] in healthy


def events(trials: Trials, index: Path, label: str, path: Path) -> list[str]:
    """What happened to a file while an index was opened, in order."""
    seen = trials.run("watch", index=str(index), label=label)["found"]
    return [event for event, where in seen if where == str(path) or (event == "refused" and where.startswith(f"{path} "))]
