"""Texts of files that people drop on the page, which Windows may have written."""

from ..io.reading import UTF16_MARKS

# archives and Excel, Parquet, gzip, Excel before 2007
BINARY = (b"PK\x03\x04", b"PAR1", b"\x1f\x8b", b"\xd0\xcf\x11\xe0")
ENCODING = "cp1252"  # what Excel writes as CSV in Western countries


def to_utf8(data: bytes) -> bytes:
    """Return a text of Windows, or in UTF-16 with its mark, in UTF-8; else `data`."""
    if data.startswith(UTF16_MARKS):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError:
            return data
    if data.startswith(BINARY) or b"\x00" in data:
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(ENCODING, "replace").encode()
    return data
