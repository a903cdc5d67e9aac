"""Read the headers of ARC, the format of web archives before WARC (https://archive.org/web/researcher/ArcFileFormat.php)."""

import re
from typing import NamedTuple

START = b"filedesc://"  # of the first record of each file
HEADER_MAX_BYTES = 16 * 1024

_LINE = (
    rb"(?P<url>[a-zA-Z][a-zA-Z0-9+.-]{0,20}:[^\r\n]{0,8192}?) [0-9a-fA-F.:-]{1,45} (?P<date>\d{12,20})"
    rb" (?P<type>[^ ;\r\n]{1,128}(?:; ?[^ \r\n]{1,64})?)"
    rb"(?:(?: [^ \r\n]{1,1024}){5})? (?P<length>\d{1,15})[ \t]{0,8}\r?\n"
)
_RESPONSE = re.compile(rb"\s*+%s(?=HTTP/\d)" % _LINE)
NEXT = re.compile(rb"\n(?=%s)" % _LINE)


class ArcHeader(NamedTuple):
    """The line before a block of an ARC file.

    Attributes:
        size: Bytes of the line.
        length: Bytes of the block.
        fields: The type and the fields that WARC has for what the line says.
    """

    size: int
    length: int
    fields: tuple[tuple[bytes, bytes], ...]


def begins(data: bytes) -> bool:
    """Return whether a file begins like ARC, or with the header of a response in ARC."""
    return data.startswith(START) or _RESPONSE.match(data) is not None


def read_header(data: bytes) -> ArcHeader | None:
    """Return the header at the start of some bytes, None if there is none.

    Args:
        data: The line of the header and the first bytes of its block, at least.
    """
    line = re.match(_LINE, data)
    if line is None:
        return None
    is_response = data.startswith(b"HTTP/", line.end())
    kind = b"warcinfo" if data.startswith(START) else b"response" if is_response else b"resource"
    date = line["date"]
    parts = (date[:4], date[4:6], date[6:8], date[8:10], date[10:12], date[12:14].ljust(2, b"0"))
    fields = (
        (b"WARC-Type", kind),
        (b"WARC-Target-URI", line["url"]),
        (b"WARC-Date", b"%s-%s-%sT%s:%s:%sZ" % parts),
        (b"Content-Type", b"application/http" if is_response else line["type"]),
        (b"Content-Length", line["length"]),
    )
    return ArcHeader(line.end(), int(line["length"]), fields)
