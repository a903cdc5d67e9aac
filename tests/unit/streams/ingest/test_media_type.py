"""The media type of a page: what its server declares, or what its content shows."""

import time

import pytest

from nearstream.streams.ingest.media_type import media_type_of

PAGE = b"<!doctype html><p>text"


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("text/html; charset=utf-8", "text/html"),
        ("text/html, text/html", "text/html"),
        ("application/octet-stream", "application/octet-stream"),
        *((wrong, "text/html") for wrong in ("", "html", "text/", "/html", "text html", "gr\xf6\xdfe", ";", "*/*")),
        ("unknown/unknown", "text/html"),
        ("Application/Unknown", "text/html"),
    ],
)
def test_only_a_type_that_says_nothing_is_replaced_by_what_the_content_shows(declared: str, expected: str) -> None:
    assert media_type_of(declared, PAGE) == expected


@pytest.mark.parametrize(
    ("content", "is_page"),
    [
        (b"\xef\xbb\xbf \n<HTML lang=de>", True),
        (b'<?xml version="1.0"?><!-- a --><!-- b --> <html>', True),
        (b"<html", False),
        (b'{"text": "<html>"}', False),
        (b"<p>text", False),
    ],
)
def test_a_content_is_a_page_if_it_begins_like_one(content: bytes, is_page: bool) -> None:
    assert media_type_of("", content) == ("text/html" if is_page else "")


@pytest.mark.parametrize("piece", [b"<!--", b"<!---->", b"<?xml ", b" ", b"<!-- -"])
def test_a_start_that_never_ends_is_read_in_linear_time(piece: bytes) -> None:
    began = time.process_time()
    assert media_type_of("x" * 100_000, piece * 500_000) == "x" * 100_000
    assert time.process_time() - began < 1
