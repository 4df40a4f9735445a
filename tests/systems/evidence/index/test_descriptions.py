"""What a manifest says about a source."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.source_files import read_sources

from ..index.sources import lexical


@pytest.fixture
def folder(tmp_path):
    """A folder of files, with one beside it and a link to that."""
    folder = tmp_path / "papers"
    (folder / "deep").mkdir(parents=True)
    (folder / "krill.txt").write_text("Krill live in swarms.")
    (folder / "deep" / "whale.md").write_text("# Whale\n\nThe whale eats krill.")
    (tmp_path / "secret.txt").write_text("A key.")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    return folder


def listed(folder, *rows, header="file,canonical url,grade,date,title,doi"):
    path = folder / "sources.csv"
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


def test_a_manifest_gives_files_their_url_grade_date_title_and_doi(folder):
    header = "File Name;Canonical_URL;GRADE;Date;Title;DOI;Journal"
    path = listed(
        folder,
        "krill.txt;https://sea.example/krill;b;2025-03-04;Krill;https://dx.doi.org/10.1000/ABC;Polar Biology",
        "deep/whale.md;;;;;;",
        header=header,
    )
    krill, whale = read_sources(path)
    assert (krill.url, krill.quality, krill.fetch_date, krill.title) == (
        "https://sea.example/krill",
        "B",
        "2025-03-04",
        "Krill",
    )
    assert (whale.url, whale.title, whale.content) == (
        (folder / "deep/whale.md").as_uri(),
        "Whale",
        "Whale\n\nThe whale eats krill.",
    )
    index = lexical(folder / "project")
    assert index.add_source(krill)
    assert not index.add_source(krill)
    assert index.source("doi:10.1000/abc").key == index.source("https://sea.example/krill").key


def test_everything_that_is_wrong_is_listed_before_anything_is_read(folder):
    path = listed(
        folder,
        "krill.txt,https://sea.example/a,,,,",
        "gone.txt,https://sea.example/b,,,,",
        "../secret.txt,,,,,",
        "link.txt,,,,,",
        f"{folder}/krill.txt,,,,,",
        "deep,,,,,",
        "deep/whale.md,http://sea.example/a/,Z,last May,,10/x",
        ",https://sea.example/c,,,,",
    )
    with pytest.raises(SourceError) as caught:
        read_sources(path)
    faults = str(caught.value).splitlines()
    assert "nothing was added, since 9 things must be mended" in faults[0], faults
    for line, said in (
        (3, "'gone.txt' is no file in"),
        (4, "leads out of the folder"),
        (5, "leads out of the folder"),
        (6, "leads out of the folder"),
        (7, "is no file in"),
        (8, "'last May' is not a date"),
        (8, "quality is 'Z'"),
        (8, "doi '10/x'"),
        (9, "add --fetch http"),
    ):
        assert any(f"line {line}: " in fault and said in fault for fault in faults), (line, said, faults)
    assert "line 2 and line 8: both are https://sea.example/a" in faults[-1]


def test_one_url_with_two_dates_has_two_versions(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"Text {name}.")
    rows = ("a.txt,https://x.example/p,2024-01-02", "b.txt,https://x.example/p,2025-01-02")
    index = lexical(tmp_path / "project")
    for document in read_sources(listed(tmp_path, *rows, header="file,url,accessed")):
        index.add_source(document)
    assert index.text(index.versions("https://x.example/p")[0].key) == "Text a."
    assert index.text(index.source("https://x.example/p").key) == "Text b."
    assert index.source("https://x.example/p").version_count == 2


def test_urls_of_a_manifest_are_fetched_only_by_a_fetcher_that_is_given(folder):
    asked = []

    def fetch(url):
        asked.append(url)
        return SimpleNamespace(url=f"{url}/moved", content=b"A fetched text.", media_type="text/plain", fetch_date="2026-01-01")

    path = listed(folder, "https://sea.example/a,https://sea.example/b,A", header="url,canonical url,grade")
    (document,) = read_sources(path, fetch=fetch)
    assert asked == ["https://sea.example/a"]
    assert (document.url, document.quality, document.fetch_date) == ("https://sea.example/b", "A", "2026-01-01")
    assert set(document.aliases) == {"https://sea.example/a", "https://sea.example/a/moved"}
    with pytest.raises(SourceError, match="add --fetch http to fetch its URL"):
        read_sources(path)


FRONT = """---
title: "Krill: a study"
Date: 2024-05-06
url: https://sea.example/krill?utm_source=x
grade: b
doi: 10.1000/xyz
---

Krill live in swarms.
"""


def test_front_matter_is_no_text_and_decides_no_url_or_grade(tmp_path):
    (tmp_path / "a.md").write_text(FRONT)
    (document,) = read_sources(tmp_path / "a.md")
    assert (document.content, document.title) == ("Krill live in swarms.", "Krill: a study")
    assert (document.url, document.quality) == ((tmp_path / "a.md").as_uri(), "C")
