"""Pages of a folder are fetched by the addresses that they stand for, and nothing else is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nlp_retrieval.errors import FetchError, FetchRefusedError, SourceError
from nlp_retrieval.systems.evidence.web_research.fetching import FolderFetcher, fetch_page

SECRET = "outside of the folder"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pages = tmp_path / "pages"
    (pages / "lakes.example" / "deep").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text(SECRET)
    (pages / "report.txt").write_text("The report.")
    (pages / "loose.txt").write_text("A page that has no address.")
    (pages / "lakes.example" / "index.html").write_text("<p>Lakes.</p>")
    (pages / "lakes.example" / "deep" / "a b.md").write_text("# Deep")
    (pages / "lakes.example" / "paper.tex").write_text("Deep.")
    (pages / "manifest.csv").write_text("file,url\nreport.txt,http://Reports.example:80/1/?utm_source=x\n")
    return pages


def test_a_page_has_the_address_that_the_list_or_its_path_says(folder: Path) -> None:
    one = FolderFetcher(folder)
    assert one.fetch("https://reports.example/1").content == b"The report."
    assert one.fetch("https://lakes.example/#top").content == b"<p>Lakes.</p>"
    assert one.fetch("http://lakes.example/index.html").media_type == "text/html"
    assert one.fetch("http://lakes.example/paper.tex").media_type == ""
    page = one.fetch("https://lakes.example/deep/a%20b.md")
    assert (page.content, page.media_type) == (b"# Deep", "text/markdown")
    assert page.url == page.asked_url == "https://lakes.example/deep/a%20b.md"


def test_the_date_of_a_page_is_that_of_its_file(folder: Path) -> None:
    os.utime(folder / "report.txt", (1_768_832_000, 1_768_832_000))
    assert FolderFetcher(folder).fetch("https://reports.example/1").fetch_date == "2026-01-19T14:13:20+00:00"


@pytest.mark.parametrize(
    "url",
    [
        "https://reports.example/2", "https://loose.txt/", "https://lakes.example/../../secret.txt",
        "https://lakes.example/..%2f..%2fsecret.txt", "https://lakes.example/%2e%2e/%2e%2e/secret.txt",
        "https://lakes.example/deep/../../../secret.txt", "https://lakes.example//secret.txt", "https://manifest.csv/",
        "https://lakes.example/link.txt", "https://lakes.example/out/secret.txt", "https://linked.example/secret.txt",
    ],
)  # fmt: skip
def test_no_address_leads_out_of_the_folder(folder: Path, url: str) -> None:
    (folder / "lakes.example" / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "lakes.example" / "out").symlink_to(folder.parent)
    (folder / "linked.example").symlink_to(folder.parent)
    with pytest.raises(FetchError):
        FolderFetcher(folder).fetch(url)


def test_what_is_no_address_of_the_web_is_refused(folder: Path) -> None:
    for url in ["file:///etc/passwd", "/etc/passwd", "report.txt", "", "https://user@lakes.example/"]:
        with pytest.raises(FetchRefusedError):
            fetch_page(FolderFetcher(folder), url)


def test_a_list_that_names_something_else_than_pages_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "lakes.example" / "link.txt").symlink_to(folder.parent / "secret.txt")
    for row in ("../secret.txt,{}", "/etc/passwd,{}", "lakes.example/link.txt,{}", "manifest.csv,{}", ",{}", "report.txt,"):
        (folder / "manifest.csv").write_text(f"file,url\n{row.format('https://a.example/')}\n")
        with pytest.raises(SourceError, match=r"manifest\.csv"):
            FolderFetcher(folder).fetch("https://a.example/")


def test_a_list_that_is_a_link_is_not_believed(folder: Path) -> None:
    (folder / "manifest.csv").rename(folder.parent / "manifest.csv")
    (folder / "manifest.csv").symlink_to(folder.parent / "manifest.csv")
    with pytest.raises(FetchError):
        FolderFetcher(folder).fetch("https://reports.example/1")


def test_a_file_that_became_a_link_is_not_followed(folder: Path) -> None:
    one = FolderFetcher(folder)
    one.fetch("https://reports.example/1")
    (folder / "report.txt").unlink()
    (folder / "report.txt").symlink_to(folder.parent / "secret.txt")
    with pytest.raises(FetchError, match="symbolic link"):
        one.fetch("https://reports.example/1")


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not a folder"):
        FolderFetcher(tmp_path / "nowhere").fetch("https://a.example/")
