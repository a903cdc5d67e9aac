"""Digests of attachments, within a time."""

import time
from base64 import encodebytes
from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.mail import message
from nearstream.workers.mail.fields import read_head
from nearstream.workers.mail.structure import Part

KEY = HashKey.public()
SCAN = bytes(range(256)) * (25 * 4096)  # 25 MiB


def part(content: bytes, encoding: bytes = b"") -> Part:
    head = b"Content-Type: application/pdf\nContent-Transfer-Encoding: " + encoding + b"\n\n"
    return Part(read_head(head, "text/plain"), content)


@given(
    st.binary(max_size=60).map(lambda content: content.translate(bytes(b"\r\n\nab"[each % 5] for each in range(256))))
)
def test_line_ends_of_an_attachment_count_alike_wherever_its_blocks_end(content: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message, "_BLOCK_BYTES", 3)
        in_blocks = message.digests([part(content)], KEY)
    assert in_blocks == message.digests([part(content)], KEY)
    assert bool(in_blocks) == bool(content.replace(b"\r\n", b"\n").strip(b"\n"))


@pytest.mark.parametrize(
    ("make", "encoding"),  # made by the test, because each process would make all parameters and keep them
    [
        (lambda: encodebytes(SCAN), b"base64"),
        (lambda: encodebytes(SCAN) + b"\0\xff", b"base64"),  # no block of it can be decoded alone
        (lambda: SCAN, b"base64"),
        (lambda: SCAN, b"quoted-printable"),
        (lambda: b"begin 644 x\n" + b"M" + b"A" * 60 + b"\n", b"x-uuencode"),
        (lambda: b"begin 644 x\n" + (b"M" + b"A" * 60 + b"\n") * 400_000, b"x-uuencode"),
        (lambda: b"\r\n" * 12_000_000, b"8bit"),
    ],
    ids=["scan", "junk behind it", "no base64", "quoted", "small", "uuencode", "line ends"],
)
def test_no_attachment_is_read_for_longer_than_there_is_time(make: Callable[[], bytes], encoding: bytes) -> None:
    attached, began = part(make(), encoding), time.thread_time()
    message.digests([attached], KEY, time.monotonic() + 0.01)
    assert time.thread_time() - began < 0.1
    assert message.digests([attached], KEY, inf) is not None
