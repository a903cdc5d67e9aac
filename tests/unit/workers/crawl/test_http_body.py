"""Stored responses are unpacked as they are encoded, not as they say."""

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest

from nearstream.workers.crawl.http_body import Body, undo
from nearstream.workers.files.content import zstd

MAX = 1_000_000
HEAD = "<head><title>Größe</title></head><body><p>The harbour office will close its north gate.</p>".encode()
TEXTS = {"head": HEAD, "doctype": b"<!doctype html>" + HEAD, "text": b"The harbour office.", "letter x": b"x^2 + y^2"}


def raw(content: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(content) + stream.flush()


def chunks(content: bytes, end: bytes = b"\r\n", extension: bytes = b"") -> bytes:
    parts = [content[:5], content[5:], b""]
    return b"".join(b"%x%s%s%s%s" % (len(part), extension, end, part, end) for part in parts)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw deflate": raw,
    "br": brotli.compress,
    "zstd": zstd.compress,
    "nothing": bytes,
}
NAMES = ["gzip", "x-gzip", "GZip", "deflate", "br", "zstd"]


def test_a_body_is_unpacked_whatever_encoding_is_declared() -> None:
    for name in NAMES:
        for packing in PACK:
            for text in TEXTS.values():
                assert undo(PACK[packing](text), "", name, MAX) == Body(text)


def test_gzip_is_unpacked_without_a_declaration() -> None:
    for name in ["", "identity", "utf-8", "none", "text/html"]:
        assert undo(gzip.compress(HEAD), "", name, MAX) == Body(HEAD)
        assert undo(HEAD, "", name, MAX) == Body(HEAD)


def test_chunks_are_undone_without_a_declaration_if_all_are_there() -> None:
    assert undo(chunks(HEAD), "", "", MAX) == Body(HEAD)
    assert undo(chunks(gzip.compress(HEAD)), "identity", "gzip", MAX) == Body(HEAD)
    for other in (chunks(HEAD)[:-5], b"5\r\nwords of a text", b"0\r\n", b"a\r\n0\r\n\r\n"):
        assert undo(other, "", "", MAX) == Body(other)
    for body in (HEAD, b"face it: no chunks", b"3\r\nabcd\r\n0\r\n\r\n", b""):
        assert undo(body, "chunked", "", MAX) == Body(body)


def test_what_follows_gzip_is_left_out() -> None:
    for behind in [b"\0" * 9, b"\n", b"<!-- cached -->", gzip.compress(b"", mtime=0)]:
        for name in NAMES:
            assert undo(gzip.compress(HEAD) + behind, "", name, MAX) == Body(HEAD)
    assert undo(gzip.compress(HEAD[:20]) + gzip.compress(HEAD[20:]), "", "gzip", MAX) == Body(HEAD)


def test_encodings_are_undone_from_the_last_to_the_first() -> None:
    for transfer, content in [("chunked", "gzip"), ("gzip, chunked", ""), ("Chunked", "gzip, x")]:
        for chunked in [chunks, lambda body: chunks(body, b"\n"), lambda body: chunks(body, b"\r\n", b"; a=b")]:
            assert undo(chunked(gzip.compress(HEAD)), transfer, content, MAX) == Body(HEAD)
            assert undo(gzip.compress(gzip.compress(HEAD)), "", "gzip, gzip", MAX) == Body(HEAD)


def test_a_body_that_is_cut_off_gives_what_precedes_and_says_so() -> None:
    text = "".join(f"<p>page {number * 7919 % 1009}</p>" for number in range(20_000)).encode()
    for name in ("gzip", "deflate", "zstd", "br"):
        found = undo(PACK[name](text)[:-20], "", name, MAX)
        assert found.is_cut_off
        assert text.startswith(found.content)
        assert len(found.content) > 10_000
    assert undo(b"5\r\nabcde\r\n9\r\nfgh", "chunked", "", MAX) == Body(b"abcdefgh", is_cut_off=True)
    assert undo(b"5\r\nabcde\r\n", "chunked", "", MAX) == Body(b"abcde", is_cut_off=True)


def test_what_is_packed_in_no_known_way_is_refused() -> None:
    damaged = bytes((byte * 37 + 11) % 256 for byte in range(600))
    for name in NAMES:
        with pytest.raises(OSError, match="no known way"):
            undo(damaged, "", name, MAX)


def test_no_more_than_a_byte_beyond_the_limit_is_unpacked() -> None:
    for name in ("gzip", "deflate", "br", "zstd"):
        found = undo(PACK[name](HEAD * 60_000), "", f"{name},{name}", MAX)
        assert len(found.content) == MAX + 1
