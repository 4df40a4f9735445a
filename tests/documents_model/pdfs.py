"""Small PDFs, written byte by byte."""

from __future__ import annotations

import io
import zlib

MEBIBYTE = bytes(2**20)


def content(*lines: str) -> bytes:
    """The drawing of a page with lines of text."""
    drawn = " 0 -14 Td ".join(f"({line}) Tj" for line in lines)
    return f"BT /F1 12 Tf 72 700 Td {drawn} ET".encode("latin-1")


def pdf_of(*pages: bytes, filtered: str = "", title: str = "") -> bytes:
    """A PDF with a content stream for each page.

    Args:
        pages: the streams.
        filtered: the filter that they went through.
        title: in the file's information.
    """
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    objects.append(f"<</Title({title})>>".encode("latin-1") if title else b"<<>>")
    kids: list[str] = []
    for page in pages:
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>" % (number + 1)
        )
        through = f"/Filter/{filtered}".encode() if filtered else b""
        objects.append(b"<<%s/Length %d>>stream\n%s\nendstream" % (through, len(page), page))
    objects[1] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(kids)}]>>".encode()
    written, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    written += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    end = b"trailer<</Size %d/Root 1 0 R/Info 4 0 R>>\nstartxref\n%d\n%%%%EOF"
    return written + end % (len(objects) + 1, written.index(b"xref\n0 "))


def encrypted(pdf: bytes, password: str) -> bytes:
    """The same PDF, to be opened with a password."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf)))
    writer.encrypt(password, owner_password="owner", algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def bomb(mebibytes: int) -> bytes:
    """Zeros, deflated to a thousandth."""
    deflate = zlib.compressobj(9)
    return b"".join(deflate.compress(MEBIBYTE) for _ in range(mebibytes)) + deflate.flush()
