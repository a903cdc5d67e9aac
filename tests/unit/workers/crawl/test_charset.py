"""The charset of web pages: from their mark, their bytes, what they declare, or what they look like."""

from nearstream.workers.crawl.page import decode_page

GERMAN = "<p>Über die Brücke geht es nach Süden, größer wird die Stadt."
JAPANESE = "<p>" + "日本語の文章です。今日は天気が良い。" * 5


def test_a_page_is_decoded_whatever_its_server_says() -> None:
    for encoding, content_type in [
        ("utf-8", "text/html"),
        ("utf-8", "text/html; charset=utf-8"),
        ("utf-8", "text/html; charset=iso-8859-1"),
        ("utf-8", "text/html; charset=bogus"),
        ("utf-8-sig", "text/html; charset=iso-8859-1"),
        ("utf-16", "text/html"),
        ("cp1252", "text/html; charset=ISO-8859-1"),
        ("cp1252", "text/html;Charset=windows-1252"),
    ]:
        assert decode_page(GERMAN.encode(encoding), content_type) == (GERMAN, False)


def test_the_charset_that_a_page_declares_is_used() -> None:
    for declaration in ["<meta charset=shift_jis>", '<?xml version="1.0" encoding="shift_jis"?>']:
        page = declaration + JAPANESE
        assert decode_page(page.encode("shift_jis"), "text/html") == (page, False)


def test_the_content_type_goes_before_the_page() -> None:
    page = "<meta charset=iso-8859-5>" + GERMAN
    assert decode_page(page.encode("cp1252"), "text/html; charset=cp1252") == (page, False)


def test_a_declaration_that_its_own_bytes_refute_is_ignored() -> None:
    page = "<meta charset=utf-16>" + GERMAN
    assert decode_page(page.encode(), "text/html") == (page, False)


def test_a_declared_charset_that_does_not_fit_is_replaced_by_the_detected_one() -> None:
    page = GERMAN.encode("cp1252")
    assert decode_page(page, "text/html; charset=utf-8") == (GERMAN, False)


def test_what_fits_no_charset_is_replaced_and_said_to_be() -> None:
    assert decode_page("<p>Brücke".encode() + b"\xff", "text/html; charset=utf-8") == ("<p>Brücke\ufffd", True)


def test_labels_of_the_encoding_standard_are_known_in_a_header_and_in_a_page() -> None:
    for label in ["x-gbk", "gb2312", "x-unknown", "us-ascii"]:
        page = f"<meta charset={label}><p>港务局将于星期二关闭北门。因为起重机需要更换新的钢缆。朱镕基"
        assert decode_page(page.encode("gbk"), f"text/html;charset='{label}'") == (page, False)
        assert decode_page(page.encode("gbk"), "text/html") == (page, False)


def test_what_is_no_charset_is_not_used() -> None:
    for charset in ["idna", "punycode", "unicode_escape", "base64", "rot13", "utf-7", "undefined"]:
        assert decode_page(b"<p>+ADw-a\\u0041", f"text/html; charset={charset}") == ("<p>+ADw-a\\u0041", False)
