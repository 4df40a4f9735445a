"""Files, folders and JSON lines to sources."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documents_model.pdfs import content, encrypted, pdf_of

from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.systems.evidence.index.store import SourceDocument
from nlp_retrieval.systems.evidence.source_files import read_sources


def error_of(*paths: Path, **settings: Any) -> str:
    with pytest.raises(SourceError) as caught:
        list(read_sources(paths, **settings))
    return str(caught.value)


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: object, name: str = "sources.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8")
        return path

    return write


def test_a_folder_is_read_to_any_depth_in_the_order_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "a.txt").write_text("Text a.")
    (tmp_path / "b" / "d.MD").write_text("# Title d\n\nText d.")
    (tmp_path / "b" / "c" / "e f.htm").write_text("<title>Title e</title><p>Text e.")
    (tmp_path / "z.pdf").write_bytes(pdf_of(content("Text z.")))
    (tmp_path / "m.jsonl").write_text('{"url": "https://arxiv.org/abs/1", "content": "Text m.", "title": null}\n')
    (tmp_path / ".hidden.txt").write_text("never")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.txt").write_text("never")
    found = list(read_sources(tmp_path, fetch_date="2026-01-19"))
    root = tmp_path.as_uri()
    assert found == [
        SourceDocument("Text a.", f"{root}/a.txt", "a", "C", "2026-01-19"),
        SourceDocument("Text m.", "https://arxiv.org/abs/1", "", "B", "2026-01-19"),
        SourceDocument("Text z.", f"{root}/z.pdf", "z", "C", "2026-01-19"),
        SourceDocument("Title d\n\nText d.", f"{root}/b/d.MD", "Title d", "C", "2026-01-19"),
        SourceDocument("Text e.", f"{root}/b/c/e%20f.htm", "Title e", "C", "2026-01-19"),
    ]
    assert (
        list(read_sources([str(tmp_path / "a.txt"), tmp_path / "a.txt"], quality="A"))
        == [SourceDocument("Text a.", f"{root}/a.txt", "a", "A", "")] * 2
    )


def test_a_page_does_not_decide_its_own_url_or_grade(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        '<html><head><base href="https://nature.com/"><link rel="canonical" href="https://nature.com/x">'
        '<meta property="og:url" content="https://nature.com/x"></head><body><p>url: https://nature.com quality: A</p></body>'
    )
    (found,) = read_sources(file)
    assert (found.url, found.quality) == (file.as_uri(), "C")
    (found,) = read_sources(file, url="https://www.bls.gov/page.html")
    assert (found.url, found.quality) == ("https://www.bls.gov/page.html", "A")


def test_what_cannot_be_read_in_a_folder_is_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "b.txt").write_bytes(b"na\xefve")
    (tmp_path / "c.pdf").write_bytes(encrypted(pdf_of(content("x")), "secret"))
    (tmp_path / "d.xlsx").write_bytes(b"PK")
    (tmp_path / "e.txt").write_text("Text e.")
    (tmp_path / "f.jsonl").write_text('{"url": "none"}\n{"url": "https://a.example", "content": "Text f."}\n')
    with pytest.warns(RetrievalWarning) as warned:
        assert [found.content for found in read_sources(tmp_path)] == ["Text e.", "Text f."]
    assert [str(warning.message) for warning in warned] == [
        f"files skipped because they cannot be read: 4 (first: {tmp_path}/a.txt: it is empty; there is nothing to read)",
        f"unsupported files skipped: 1 (first: {tmp_path}/d.xlsx)",
    ]


def test_links_pipes_and_sockets_in_a_folder_are_left_out_and_counted(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("Secret.")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("Text a.")
    (folder / "file.txt").symlink_to(outside / "secret.txt")
    (folder / "above").symlink_to(tmp_path)
    (folder / "nowhere.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "pipe.txt")
    with pytest.warns(RetrievalWarning) as warned:
        assert [found.content for found in read_sources(folder)] == ["Text a."]
    assert [str(warning.message) for warning in warned] == [
        f"links, devices, pipes and sockets skipped: 4 (first: {folder}/above)",
    ]


def test_a_name_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "\x1b[31m\nred.txt").write_text("")
    with pytest.warns(RetrievalWarning) as warned:
        assert list(read_sources(tmp_path)) == []
    assert str(warned[0].message).isprintable()


def test_hidden_text_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>Text a.</p><p hidden>Obey.</p><p hidden>Obey.</p>")
    (tmp_path / "b.txt").write_text("Text\u202e b.")
    (tmp_path / "c.txt").write_text("Text\u00ad c.")
    with pytest.warns(RetrievalWarning) as warned:
        assert [found.content for found in read_sources(tmp_path)] == ["Text a.", "Text b.", "Text c."]
    assert [str(warning.message) for warning in warned] == [
        f"sources with text that readers do not see, which was omitted: 2 (first: {tmp_path}/a.html: 2 hidden elements)"
    ]


def test_rows_say_url_title_grade_and_date(lines: Callable[..., Path]) -> None:
    first = {"url": "https://example.org/1", "content": " A\u200b text. ", "title": "T\n1", "quality": "A"}
    date = "2026-01-19T14:30:00Z"
    path = lines(first | {"fetch_date": date}, "\n", {"url": "https://arxiv.org/abs/1", "content": "Another.", "extra": [1]})
    assert list(read_sources(path)) == [
        SourceDocument("A text.", "https://example.org/1", "T 1", "A", date),
        SourceDocument("Another.", "https://arxiv.org/abs/1", "", "B", ""),
    ]
    assert [found.quality for found in read_sources(path, quality="E")] == ["A", "E"]


GOOD = {"url": "https://example.org/1", "content": "A text."}
WRONG: list[tuple[object, str]] = [
    ({"url": "https://a.org", "body": "x"}, 'no "content" field (found: "url", "body")'),
    ({"link": "https://a.org", "content": "x"}, 'no "url" field (found: "link", "content")'),
    (GOOD | {"content": "\u200b \u202e"}, '"content" has no visible text'),
    (GOOD | {"content": 1}, '"content" is a number (1); expected text'),
    (GOOD | {"url": "example.org"}, "'example.org' is not a URL"),
    (GOOD | {"quality": "F"}, "quality is 'F', and grades are A (best) to E"),
    (GOOD | {"fetch_date": "yesterday"}, "'yesterday' is not a date in ISO 8601"),
]


def test_a_wrong_row_is_an_error_that_names_its_line_and_in_a_folder_ends_its_file(
    lines: Callable[..., Path], tmp_path: Path
) -> None:
    for row, message in WRONG:
        path = lines(GOOD, GOOD, row)
        found = error_of(path)
        assert found.startswith(f"{path}, line 3: ")
        assert message in found
    with pytest.warns(RetrievalWarning, match=r"cannot be read: 1 \(first: .*line 3: "):
        assert len(list(read_sources(tmp_path))) == 2
