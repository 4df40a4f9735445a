"""Bytes to text: a byte order mark decides, then UTF-8 if it is valid, then what the source declares; nothing is guessed."""

from __future__ import annotations

import codecs

from nlp_retrieval.errors import SourceError

__all__ = ["decode_text"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks, UTF-32 before UTF-16, whose mark begins with the same two bytes."""

_ACCEPTED = frozenset(
    [f"iso8859-{part}" for part in range(1, 17)]
    + [f"cp{number}" for number in (437, 850, 852, 866, 874, 932, 949, 950, *range(1250, 1259))]
    + """utf-8 utf-8-sig utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be ascii koi8-r koi8-u koi8-t mac-roman mac-cyrillic
    tis-620 gb2312 gbk gb18030 hz big5 big5hkscs euc_jp euc_jis_2004 iso2022_jp iso2022_jp_1 iso2022_jp_2 shift_jis
    shift_jis_2004 euc_kr johab iso2022_kr ptcp154 viscii""".split()
)
"""Encodings that pages and files are written in. Python knows others (UTF-7, punycode, its own escapes) which would turn plain
bytes into text that nobody sees in them."""

_AS_BROWSERS_READ = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
"""Real encodings of pages that declare a narrower one (https://encoding.spec.whatwg.org/#names-and-labels)."""

_STATEFUL = ("iso2022", "hz")
"""Encodings whose bytes are valid UTF-8 as well, and mean something else."""


def decode_text(data: bytes, declared: str = "", where: str = "this source") -> str:
    """Return the text of some bytes, without a byte order mark.

    Args:
        data: the bytes.
        declared: the encoding that the source or its server names; may be empty. It counts only if the bytes are not UTF-8,
            since most pages that declare a wrong encoding are.
        where: the source's name, for messages.

    Raises:
        SourceError: no encoding fits; the message names the first byte that does not.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _decoded(data, name, where, f"its byte order mark says {name.upper()}").removeprefix("\ufeff")
    known = _known(declared)
    if known.startswith(_STATEFUL):
        return _decoded(data, known, where, f"it declares {known}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if not known:
            said = f"it declares {declared[:40]!r}, which is not accepted" if declared else "it declares no encoding"
            raise SourceError(
                f"{where}: byte 0x{data[error.start]:02x} at {error.start:,} is not UTF-8, and {said}; "
                "save it as UTF-8, for example with iconv -f ISO-8859-1 -t UTF-8"
            ) from None
    return _decoded(data, known, where, f"it declares {known}")


def _known(declared: str) -> str:
    """Return Python's name of an accepted encoding, else an empty string."""
    try:
        name = codecs.lookup(declared.strip()).name if declared.strip() else ""
    except (LookupError, ValueError):
        return ""
    return _AS_BROWSERS_READ.get(name, name) if name in _ACCEPTED else ""


def _decoded(data: bytes, encoding: str, where: str, reason: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{data[error.start]:02x} at {error.start:,}" if error.start < len(data) else "its end"
        raise SourceError(f"{where}: {reason}, but {byte} does not fit ({error.reason}); save it as UTF-8") from None
