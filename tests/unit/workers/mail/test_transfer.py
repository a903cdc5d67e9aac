"""Transfer encodings are decoded as they are really sent."""

import email
import quopri
from base64 import b64encode, encodebytes, urlsafe_b64encode

from hypothesis import given
from hypothesis import strategies as st

from nearstream.workers.mail.headers import read_head
from nearstream.workers.mail.transfer import decode_blocks, decode_text, decode_transfer

TEXT = (
    b"The harbour office will close its north gate on Tuesday because the crane needs a new cable. Lorries should take "
    b"the eastern ramp.\nPallets that arrive after four stay in shed nine overnight, at 5 \xe2\x82\xac = cheap.\n"
)
ENCODED = encodebytes(TEXT)
QUOTED = quopri.encodestring(TEXT)
FOOTER = b"\n_______________\nlist mailing list\nhttps://lists.example/info\n"


def test_an_encoding_is_known_under_each_name_that_is_sent() -> None:
    for encoding, values in {
        "base64": (b"base64 ", b"base64 (x)", b'"BASE64"', b"\r\n base64"),
        "quoted-printable": (b"quoted_printable",),
        "": (b"7bit", b"unknown", b"x-uuencode"),
    }.items():
        for value in values:
            assert read_head(b"Subject: x\r\nContent-Transfer-Encoding: " + value + b"\r\nX: y").encoding == encoding


def test_a_text_is_decoded() -> None:
    for content, encoding in [
        (ENCODED, "base64"),
        (ENCODED.replace(b"\n", b" \t\n\n"), "base64"),
        (ENCODED.replace(b"\n", b""), "base64"),
        (ENCODED.rstrip(b"=\n"), "base64"),
        (b64encode(TEXT[:100]) + b"\n" + b64encode(TEXT[100:110]) + b"\n" + b64encode(TEXT[110:]), "base64"),
        (QUOTED, "quoted-printable"),
        (QUOTED.replace(b"=\n", b"= \t\r\n"), "quoted-printable"),
        (QUOTED.replace(b"=\n", b"=\r"), "quoted-printable"),
        (TEXT, ""),
    ]:
        assert decode_text(content, encoding) == (TEXT, False)


def test_a_text_that_is_encoded_otherwise_than_said_is_repaired() -> None:
    for content, encoding, text in [
        (ENCODED, "", TEXT),
        (QUOTED, "", TEXT),
        (TEXT, "base64", TEXT),
        (QUOTED, "base64", TEXT),
        (ENCODED, "quoted-printable", TEXT),
        (ENCODED + FOOTER, "base64", TEXT + b"\n" + FOOTER.lstrip()),
        (ENCODED.replace(b"\n", b"!\n"), "base64", TEXT),
        (b"> " + ENCODED.strip().replace(b"\n", b"\n> "), "base64", TEXT),
        (b"This is it:\n" + ENCODED, "base64", TEXT + b"\nThis is it:"),
        (b"** junk **\n" + ENCODED, "base64", TEXT + b"\n** junk **"),
    ]:
        assert decode_text(content, encoding) == (text, True)


def test_texts_that_only_look_encoded_stay_as_they_are() -> None:
    for text in [
        b"See https://a.example/?id=20&name=AB for more = and so on.\n",
        b"a=b\nc=3D\nBerlin=C3\n",
        b"A" * 70 + b"\n",
        b"one word\n",
        b"",
    ]:
        assert decode_text(text, "") == (text, False)


@given(st.binary(max_size=2_000), st.sampled_from(["base64", "quoted-printable"]))
def test_blocks_hold_what_is_decoded_at_once(content: bytes, encoding: str) -> None:
    for sent in (content, b64encode(content)):
        assert b"".join(decode_blocks(sent, encoding)) == decode_transfer(sent, encoding)[0]


@given(st.binary(min_size=1, max_size=3_000), st.integers(1, 900))
def test_pieces_of_base64_are_joined_wherever_they_were_cut(content: bytes, size: int) -> None:
    pieces = b"\r\n".join(b64encode(content[at : at + size]) for at in range(0, len(content), size))
    assert decode_transfer(pieces, "base64") == (content, False)
    of_urls = urlsafe_b64encode(content)
    assert decode_transfer(of_urls, "base64") == (content, b"-" in of_urls or b"_" in of_urls)


@given(st.text(max_size=200))
def test_texts_are_decoded_as_the_standard_library_does(text: str) -> None:
    sent = quopri.encodestring(text.encode("utf-8", "replace"))
    message = email.message_from_bytes(b"Content-Transfer-Encoding: quoted-printable\n\n" + sent)
    expected = message.get_payload(decode=True)
    assert isinstance(expected, bytes)
    assert decode_transfer(sent, "quoted-printable")[0].split() == expected.split()


def test_long_texts_are_decoded_in_blocks() -> None:
    content = b"\xff" * 1_000_001
    assert decode_transfer(b"=FF" * len(content), "quoted-printable")[0] == content
    for long in (TEXT * 2_000, TEXT.replace(b"\n", b" ") * 2_000):
        assert decode_transfer(quopri.encodestring(long), "quoted-printable")[0] == long
