"""Bytes to text: Python's own codecs are the oracle for what each encoding means."""

from __future__ import annotations

import codecs

import pytest

from nlp_retrieval.documents import decode_text, read_document
from nlp_retrieval.errors import SourceError

SAMPLES = {
    "windows-1252": "Straße – 5 € “naïve”",  # noqa: RUF001
    "iso-8859-2": "Žluťoučký kůň",
    "windows-1251": "Привет, мир",
    "windows-1255": "שלום",
    "shift_jis": "日本語の文章",
    "iso-2022-jp": "日本語の文章",
    "gb18030": "中文文本𠀀",
    "big5": "繁體中文",
    "utf-16le": "naïve 漢字",
}


def test_a_declared_encoding_is_used_where_the_bytes_are_not_utf_8() -> None:
    for encoding, text in SAMPLES.items():
        assert decode_text(text.encode(encoding), encoding.upper()) == text


def test_a_byte_order_mark_decides_whatever_is_declared() -> None:
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
    ):
        assert decode_text(mark + "naïve 漢字 🙂".encode(encoding), "windows-1251") == "naïve 漢字 🙂"


def test_without_a_declaration_the_byte_that_does_not_fit_is_named() -> None:
    with pytest.raises(SourceError, match=r"page\.txt: byte 0xef at 2 is not UTF-8; save it as UTF-8"):
        decode_text("naïve".encode("latin-1"), where="page.txt")


def test_a_byte_that_does_not_fit_the_declared_encoding_is_named() -> None:
    with pytest.raises(SourceError, match="byte 0x81 at 1 is not CP1252"):
        decode_text(b"a\x81\xff", "latin1")
    with pytest.raises(SourceError, match="byte 0x00 at 4 is not UTF-16"):
        decode_text(codecs.BOM_UTF16_LE + b"a\x00\x00")


@pytest.mark.parametrize("declared", ["utf-7", "unicode_escape", "zlib", "\x00", "../os"])
def test_what_is_no_encoding_of_pages_is_not_accepted(declared: str) -> None:
    with pytest.raises(SourceError, match="is not UTF-8"):
        decode_text(b"+ADw-script\xff", declared)
    assert decode_text(b"+ADw-script+AD4-", declared) == "+ADw-script+AD4-"


def test_a_server_or_the_page_itself_declares_the_encoding() -> None:
    page = '<html><head><meta charset="windows-1251"></head><body><p>Привет, мир</p></body></html>'
    assert read_document(page.encode("windows-1251"), "a.html").text == "Привет, мир"
    plain = "<p>Привет, мир</p>".encode("koi8-r")
    assert read_document(plain, media_type='text/html; charset="KOI8-R"').text == "Привет, мир"
    assert read_document("Привет".encode("koi8-r"), media_type="text/plain;charset=koi8-r").text == "Привет"
    with pytest.raises(SourceError, match=r"a\.html: byte 0xf0 at 3 is not UTF-8"):
        read_document(plain, "a.html")
