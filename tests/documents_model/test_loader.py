"""A folder of documents as items."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlp_retrieval.documents.loader import DocumentsLoader
from nlp_retrieval.errors import RetrievalWarning, SourceError


def test_a_manifest_that_is_a_link_is_read_and_not_called_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("Text a.")
    (tmp_path / "list.csv").write_text("file,title\na.txt,Named\n")
    (folder / "manifest.csv").symlink_to(tmp_path / "list.csv")
    (item,) = DocumentsLoader(folder).stream()  # a warning would be an error
    assert (item.title, item.content) == ("Named", "Text a.")


def test_a_manifest_further_down_is_named_and_two_columns_of_one_meaning_are_refused(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below/manifest.csv").write_text("file\nb.txt\n")
    (tmp_path / "a.txt").write_text("Text a.")
    (tmp_path / "manifest.csv").write_text("file,accessed,canonical url\na.txt,2020-01-02,https://a.example\n")
    with pytest.warns(RetrievalWarning, match=r"unsupported files skipped: 1 \(first: .*below/manifest\.csv"):
        (item,) = DocumentsLoader(tmp_path).stream()
    assert item.metadata == {"document": "a.txt", "date": "2020-01-02", "url": "https://a.example"}
    (tmp_path / "manifest.csv").write_text("file,filename\na.txt,a.txt\n")
    with pytest.raises(SourceError, match="several columns mean the file"):
        DocumentsLoader(tmp_path).load()
