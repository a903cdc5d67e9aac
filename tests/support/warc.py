"""WARC files for tests, made by warcio."""

import gzip
from collections.abc import Sequence
from io import BytesIO

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

DATE = "2026-03-02T08:15:00Z"


class Crawl:
    """A WARC file in the making."""

    def __init__(self, *, packed: bool = False) -> None:
        self._out = BytesIO()
        self._writer = WARCWriter(self._out, gzip=packed)
        self._write(self._writer.create_warcinfo_record("crawl.warc", {"software": "warcio"}))

    def response(
        self,
        url: str,
        body: bytes,
        status: str = "200 OK",
        headers: Sequence[tuple[str, str]] = (("Content-Type", "text/html; charset=utf-8"),),
        date: str = DATE,
    ) -> None:
        http = StatusAndHeaders(status, list(headers), protocol="HTTP/1.1")
        dated = {"WARC-Date": date}
        self._write(
            self._writer.create_warc_record(
                url, "response", payload=BytesIO(body), http_headers=http, warc_headers_dict=dated
            )
        )

    def revisit(self, url: str, status: str = "200 OK", headers: Sequence[tuple[str, str]] = ()) -> None:
        http = StatusAndHeaders(status, list(headers), protocol="HTTP/1.1")
        self._write(
            self._writer.create_revisit_record(
                url, digest="sha1:x", refers_to_uri=url, refers_to_date=DATE, http_headers=http
            )
        )

    def stored(self, url: str, content: bytes, content_type: str, kind: str = "resource") -> None:
        """Write a record whose block is the content itself."""
        dated = {"WARC-Date": DATE}
        self._write(
            self._writer.create_warc_record(
                url, kind, BytesIO(content), warc_content_type=content_type, warc_headers_dict=dated
            )
        )

    def content(self) -> bytes:
        return self._out.getvalue()

    def _write(self, record: object) -> None:
        self._writer.write_record(record)


def packed(body: bytes) -> tuple[bytes, tuple[str, str]]:
    """Return a gzipped body and its header."""
    return gzip.compress(body), ("Content-Encoding", "gzip")


def chunked(body: bytes) -> tuple[bytes, tuple[str, str]]:
    """Return a body in two chunks and its header."""
    chunks = (body[:5], body[5:])
    return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n", (
        "Transfer-Encoding",
        "chunked",
    )
