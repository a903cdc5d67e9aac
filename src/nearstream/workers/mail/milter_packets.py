"""Packets of the milter protocol, version 6, for a filter that reads messages and sets headers.

A packet is 4 bytes with the length of the rest, one byte that names a command or a reply, and its data. All numbers
are big-endian, and texts end with a zero byte.
"""

import struct

VERSION = 6
PACKET_MAX_BYTES = 256 * 1024  # Postfix sends at most 65,535 bytes of a body, and 102,400 of a header

# What the mail server sends.
ABORT, BODY, END, HEADER, END_OF_HEADERS, RECIPIENT = b"A", b"B", b"E", b"L", b"N", b"R"
NEGOTIATE, MACROS, QUIT, QUIT_NEW = b"O", b"D", b"Q", b"K"
SILENT = (ABORT, HEADER, END_OF_HEADERS, MACROS, QUIT_NEW, RECIPIENT)  # commands without a reply

# What a filter replies.
ADD_HEADER, CHANGE_HEADER, CONTINUE, SKIP, REPLY_CODE = b"h", b"m", b"c", b"s", b"y"
ACTIONS = 0x01 | 0x10  # a filter adds headers, and changes them
# The mail server leaves out the connection, HELO, the sender, what is unknown, and DATA.
_LEFT_OUT = 0x1 | 0x2 | 0x4 | 0x100 | 0x200
# It waits for no reply to a recipient, a header or the end of these, knows `SKIP`, and keeps the white space before a
# value.
_OTHERWISE = 0x8000 | 0x80 | 0x40000 | 0x400 | 0x100000
STEPS = _LEFT_OUT | _OTHERWISE


class ProtocolError(Exception):
    """The mail server sends what version 6 of the protocol does not have."""


def packet(kind: bytes, data: bytes = b"") -> bytes:
    """Return the bytes of a packet."""
    return struct.pack(">I", len(data) + 1) + kind + data


def negotiation(data: bytes) -> bytes:
    """Return the reply to an offer: what we do, and which steps we need."""
    try:
        version, actions, steps = struct.unpack(">III", data[:12])
    except struct.error:
        raise ProtocolError("expected an offer of 12 bytes") from None
    if version < VERSION or ACTIONS & ~actions or STEPS & ~steps:
        raise ProtocolError(
            f"expected protocol {VERSION} with actions {ACTIONS:#x} and steps {STEPS:#x}, "
            f"got {version}, {actions:#x}, {steps:#x}"
        )
    return packet(NEGOTIATE, struct.pack(">III", VERSION, ACTIONS, STEPS))


def address(data: bytes) -> str:
    """Return the address in the data of a packet, or nothing if it is not plain ASCII."""
    first = data.partition(b"\0")[0]
    return first.decode() if first.isascii() and first.decode().isprintable() else ""


def header(data: bytes) -> tuple[bytes, bytes]:
    """Return the name of the header in the data of a packet, and its value with the white space before that.

    Lines of a folded value end with a line feed.
    """
    name, value, *rest = [*data.split(b"\0"), b"", b""]
    if not name or not data.endswith(b"\0") or any(rest):
        raise ProtocolError("expected the name and value of a header")
    return name, value


def added(name: bytes, value: bytes) -> bytes:
    """Return the reply that adds a header after the others."""
    return packet(ADD_HEADER, b"%b\0 %b\0" % (name, value))


def deleted(name: bytes, number: int) -> bytes:
    """Return the reply that deletes the n-th header of a name, counted from 1."""
    return packet(CHANGE_HEADER, struct.pack(">I", number) + b"%b\0\0" % name)


def refused(text: bytes) -> bytes:
    """Return the reply that refuses a message with a line of SMTP."""
    return packet(REPLY_CODE, text.replace(b"%", b"%%") + b"\0")
