"""The charset of web pages: from their mark, their bytes, what they declare, or what they look like."""

import pytest

from nearstream.workers.crawl.charset import decode_page

GERMAN = "<p>Über die Brücke geht es nach Süden, größer wird die Stadt."
JAPANESE = "<p>" + "日本語の文章です。今日は天気が良い。" * 5


def not_asked(_: bytes) -> str:
    raise AssertionError("the charset is known")


def unknown(_: bytes) -> None:
    return None


@pytest.mark.parametrize(
    ("encoding", "content_type"),
    [
        ("utf-8", "text/html"),
        ("utf-8", "text/html; charset=utf-8"),
        ("utf-8", "text/html; charset=iso-8859-1"),
        ("utf-8", "text/html; charset=bogus"),
        ("utf-8-sig", "text/html; charset=iso-8859-1"),
        ("utf-16", "text/html"),
        ("cp1252", "text/html; charset=ISO-8859-1"),
        ("cp1252", "text/html;Charset=windows-1252"),
    ],
)
def test_a_page_is_decoded_whatever_its_server_says(encoding: str, content_type: str) -> None:
    assert decode_page(GERMAN.encode(encoding), content_type, not_asked) == (GERMAN, False)


@pytest.mark.parametrize("declaration", ["<meta charset=shift_jis>", '<?xml version="1.0" encoding="shift_jis"?>'])
def test_the_charset_that_a_page_declares_is_used(declaration: str) -> None:
    page = declaration + JAPANESE
    assert decode_page(page.encode("shift_jis"), "text/html", not_asked) == (page, False)


def test_the_content_type_goes_before_the_page() -> None:
    page = "<meta charset=iso-8859-5>" + GERMAN
    assert decode_page(page.encode("cp1252"), "text/html; charset=cp1252", not_asked) == (page, False)


def test_a_declaration_that_its_own_bytes_refute_is_ignored() -> None:
    page = "<meta charset=utf-16>" + GERMAN
    assert decode_page(page.encode(), "text/html", not_asked) == (page, False)


def test_a_declared_charset_that_does_not_fit_is_replaced_by_the_detected_one() -> None:
    page = GERMAN.encode("cp1252")
    assert decode_page(page, "text/html; charset=utf-8", lambda _: "cp1252") == (GERMAN, False)


@pytest.mark.parametrize("detected", [None, "", "nosuch", "base64", "idna", "utf-8"])
def test_what_fits_no_charset_is_replaced_and_said_to_be(detected: str | None) -> None:
    text, is_replaced = decode_page(b"<p>Br\xffcke", "text/html; charset=utf-8", lambda _: detected)
    assert (text, is_replaced) == ("<p>Br\ufffdcke", True)


@pytest.mark.parametrize("charset", ["idna", "punycode", "unicode_escape", "base64", "rot13", "utf-7", "undefined"])
def test_what_is_no_charset_is_not_used(charset: str) -> None:
    assert decode_page(b"<p>+ADw-a\\u0041", f"text/html; charset={charset}", unknown) == ("<p>+ADw-a\\u0041", False)
