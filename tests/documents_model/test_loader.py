"""A folder of documents as items."""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval.documents.loader import DocumentsLoader


def test_a_manifest_that_is_a_link_is_read_and_not_called_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("Text a.")
    (tmp_path / "list.csv").write_text("file,title\na.txt,Named\n")
    (folder / "manifest.csv").symlink_to(tmp_path / "list.csv")
    (item,) = DocumentsLoader(folder).stream()  # a warning would be an error
    assert (item.title, item.content) == ("Named", "Text a.")
