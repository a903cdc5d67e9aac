"""The header of a message or of a part of it: where it ends, what it says about the content, who sent it and when.

Fields are found here and not by the standard library, of which two patch releases read some headers differently, so
that two workers would sign one message differently.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from nearstream.schemas.documents.document import ADDRESS_BYTES, EPOCH, ID_PATTERN, LINKS_MAX, RECIPIENTS_MAX
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.charset import decode

HEAD_MAX_BYTES = 256 * 1024
_VALUE_MAX_BYTES = 4_096
_END = rb"(?:\r\n|\n|\r|\Z)"
# A parameter on a line of its own, whose program forgot to indent it.
_PARAMETER = rb"(?:boundary|charset|delsp|format|name|filename|protocol|report-type|type)\*?\d*\*?[ \t]*+=[^\r\n]*+"
_CONTINUED = rb"(?:[ \t][^\r\n]*+|" + _PARAMETER + rb")"
# Fields that messages have, or that their structure depends on. A header goes on with one behind a line of no field.
_KNOWN = rb"(?:content-(?:type|transfer-encoding|disposition)|message-id|mime-version|received)[ \t]*+:"
_FIELD = rb"(?:[!-9;-~]++[ \t]*+:[^\r\n]*+|" + _CONTINUED + rb"|[^\r\n]{1,998}+(?=[\r\n]{1,2}" + _KNOWN + rb"))"
_HEAD = re.compile(rb"(?:From [^\r\n]*+" + _END + rb")?(?>(?:" + _FIELD + _END + rb")*)", re.IGNORECASE)
_NO_FIELD = re.compile(
    rb"(?:\A(?!From )|(?<=[\r\n]))(?!" + _CONTINUED + rb"|[!-9;-~]++[ \t]*+:)[^\r\n]++" + _END, re.IGNORECASE
)
_COMMON = rb"(?:date|delivered-to|from|return-path|subject|to|x-[!-9;-~]++)[ \t]*+:"
_BEFORE_HEAD = re.compile(
    rb">(?=From \S{1,255} )|[\r\n\xef\xbb\xbf]++(?=" + _KNOWN + rb"|" + _COMMON + rb")", re.IGNORECASE
)
_COUNTED = re.compile(
    rb"(\d{1,10})[ \t]{0,32}\r?\n"
)  # the bytes of a message of Apple Mail, before what it notes of it
_LOOKED_AT_BYTES = 1_000
_UNINDENTED = re.compile(rb"(?<=[\r\n])(?=" + _PARAMETER + rb")", re.IGNORECASE)
_BLANK = re.compile(_END)
_FIELDS = {
    name: re.compile(
        rb"(?:\A|(?<=[\r\n]))content-" + name + rb"[ \t]*+:([^\r\n]*+(?>(?:(?:\r\n|\n|\r)" + _CONTINUED + rb")*))",
        re.IGNORECASE,
    )
    for name in (b"type", b"transfer-encoding", b"disposition")
}
_TOKEN = rb"[a-z0-9!#$&^_.+-]"
_MEDIA = re.compile(rb"\A[\s\"'<(=:;,]*+(" + _TOKEN + rb"{1,64})(?:\s*+/\s*+(" + _TOKEN + rb"{1,127}))?", re.IGNORECASE)
_VALID = re.compile(rb"\A\s*+" + _TOKEN + rb"++/" + _TOKEN + rb"++\s*+(?:\([^()]*+\)\s*+)?(?:;|\Z)", re.IGNORECASE)
_BOUNDARY = re.compile(rb"""\bboundary\*?\s*+=\s*+(?:"((?:[^"\\]|\\.){1,256})|([^\s;"]{1,256}))""", re.IGNORECASE)
_CHARSET = re.compile(rb"""\bcharset\*?\d*\*?\s*+=\s*+["']?\s*+([^\s;,"]{1,80})""", re.IGNORECASE)
_ENCODING = re.compile(rb"base64|quoted[ _-]?printable", re.IGNORECASE)
_INLINE = re.compile(rb"\A[\s\"']*+(?:inline|\Z)", re.IGNORECASE)
_LINK_BYTES = 6  # so that eight fit into a label
_HTML_NAMED = re.compile(rb"name\*?\d*\*?\s*+=[^;\r\n]{1,400}?\.x?html?\b", re.IGNORECASE)
_NAMED = re.compile(rb"\b(?:file)?name\*?\d*\*?\s*+=", re.IGNORECASE)
TEXT, HTML, UNKNOWN = "text/plain", "text/html", ""
# What programs write for the whole of a type.
_ALONE = {
    **{kind: f"{kind}/octet-stream" for kind in ("application", "audio", "font", "image", "model", "video")},
    **{kind: f"multipart/{kind}" for kind in ("alternative", "mixed", "related", "report", "signed")},
    **{"multipart": "multipart/mixed", "html": HTML, "text": TEXT, "plain": TEXT, "message": "message/rfc822"},
}
_MAIN_TYPES = {*(kind.partition("/")[0] for kind in _ALONE.values()), "chemical", "x-world"}
_SUBJECT_MAX_CHARACTERS = 4_096
_DATE_MAX_CHARACTERS = 128
_ID_MAX_CHARACTERS = 1_024
_ADDRESSES_MAX_CHARACTERS = 65_536
_ADDRESSES_MAX = 1_000
_VALUES_MAX = 64  # of one header. To find the charset of a value may take a millisecond.
_QUOTED = re.compile(r'"[^"]{0,1000}"')
_ADDRESS = re.compile(r"[^\s<>@,;:\"()\[\]\\]{1,64}@[^\s<>@,;:\"()\[\]\\]{1,255}")
_ID = re.compile(r"\A\s{0,64}(<[^<>\s]{1,510}>)")


class Head(NamedTuple):
    """What the header of a part says about its content."""

    kind: str  # the media type in lower case, `text/plain` if none is declared, empty if it cannot be understood
    is_valid: bool  # the type is missing, or is written as it ought to be, and each line is one of a field
    boundary: bytes  # Of a multipart: what separates its parts. Empty if it is not declared.
    label: str  # the declared charset, or an empty text
    encoding: str  # `base64`, `quoted-printable`, or empty for none
    is_attachment: bool  # it is not to be shown with the message
    is_named: bool  # it has the name of a file


def whole_lines(message: bytes) -> bytes:
    """Return a message whose header is at its start.

    Blank lines, a byte order mark and a mark of mboxes before it are left out. Lines that end twice end once.
    """
    before = _BEFORE_HEAD.match(message)
    message = message[before.end() :] if before else message
    if (counted := _COUNTED.match(message)) and message.startswith(b"<?xml", end := counted.end() + int(counted[1])):
        message = message[counted.end() : end]
    return message.replace(b"\r\r\n", b"\r\n") if b"\r\r\n" in message[:_LOOKED_AT_BYTES] else message


def split_head(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return where the header of the part from `start` to `end` ends, and where its content begins.

    The header ends at a blank line, or where a line is no field of a header and none that is known follows.
    """
    found = _HEAD.match(data, start, min(end, start + HEAD_MAX_BYTES))
    after = found.end() if found else start
    blank = _BLANK.match(data, after, end)
    return after, blank.end() if blank else after


def head_of(message: bytes) -> bytes:
    """Return the fields of a message, of at most 256 KiB. Where a field goes on, its line is indented."""
    return _UNINDENTED.sub(b" ", _NO_FIELD.sub(b"", message[: split_head(message, 0, len(message))[0]]))


def read_head(head: bytes, default: str = TEXT) -> Head:
    """Return what a header says. A part that declares no media type has the default one."""
    declared = _value(head, b"type")
    kind, is_valid = _kind(declared) if declared.strip() else (default, True)
    is_valid = is_valid and not _NO_FIELD.search(head)
    boundary, charset = _BOUNDARY.search(declared), _CHARSET.search(declared)
    encoding = _ENCODING.match(_value(head, b"transfer-encoding").lstrip(b" \t\r\n\"'"))
    disposition = _value(head, b"disposition")
    if kind == _ALONE["application"] and (_HTML_NAMED.search(declared) or _HTML_NAMED.search(disposition)):
        kind = HTML
    return Head(
        kind,
        is_valid,
        re.sub(rb"\\(.)", rb"\1", boundary[1] or boundary[2]).rstrip() if boundary else b"",
        charset[1].strip(b"'").rpartition(b"'")[2].decode("latin-1") if charset else "",
        "" if encoding is None else "base64" if encoding[0][:1] in b"bB" else "quoted-printable",
        not _INLINE.match(disposition),
        bool(_NAMED.search(declared) or _NAMED.search(disposition)),
    )


def _value(head: bytes, name: bytes) -> bytes:
    found = _FIELDS[name].search(head)
    return found[1][:_VALUE_MAX_BYTES] if found else b""


def _kind(declared: bytes) -> tuple[str, bool]:
    found = _MEDIA.match(declared)
    if found is None:
        return UNKNOWN, False
    first, second = (part.decode().lower() if part else "" for part in found.groups())
    if second and first in _MAIN_TYPES:
        return f"{first}/{second}", _VALID.match(declared) is not None
    return UNKNOWN if second else _ALONE.get(first, UNKNOWN), False


def raw_headers(message: Message, name: str, max_characters: int) -> list[str]:
    """Return the first values of a header as they were sent, each cut to a length."""
    # The message itself would decode values, which takes long and may fail.
    values = (str(value)[:max_characters] for key, value in message.raw_items() if key.lower() == name)
    return list(map(_text, islice(values, _VALUES_MAX)))


def first_id(message: Message, name: str) -> str | None:
    """Return the first Message-ID in a header, with its angle brackets, None if it cannot be the id of a document."""
    for value in raw_headers(message, name, _ID_MAX_CHARACTERS):
        found = _ID.match(value)
        if found and re.search(ID_PATTERN, found[1]):
            return found[1]
    return None


def sent_at(message: Message, latest: datetime) -> datetime | None:
    """Return the time of the Date header, None if it is missing, unreadable, before 1970 or after `latest`."""
    for value in raw_headers(message, "date", _DATE_MAX_CHARACTERS):
        try:
            sent = parsedate_to_datetime(value)
            sent = sent.replace(tzinfo=UTC) if sent.tzinfo is None else sent.astimezone(UTC)
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
        if EPOCH <= sent <= latest:
            return sent
    return None


def subject(message: Message) -> str:
    """Return the first Subject, decoded, or an empty text. At most 4,096 characters as sent are read."""
    values = raw_headers(message, "subject", _SUBJECT_MAX_CHARACTERS)
    value = re.sub(r"[\r\n]+", " ", values[0]) if values else ""
    try:
        return "".join(_decoded(piece, charset) for piece, charset in decode_header(value)).strip()
    except (HeaderParseError, ValueError, LookupError):
        return value.strip()


def sender_hash(message: Message, key: HashKey) -> str | None:
    """Return the hash of the address in From, or else in Sender, if there is one.

    With the public key there is none, because such a hash would reveal the address.
    """
    return next(iter(_hashes(message, ("from",), key) or _hashes(message, ("sender",), key)), None)


def sender_domain(message: Message, key: HashKey) -> str | None:
    """Return the domain of the sender, or None without one and with the public key."""
    addresses = _addresses(message, ("from",), key) or _addresses(message, ("sender",), key)
    return addresses[0].rpartition("@")[2] if addresses else None


def link_hashes(sites: Iterable[str], key: HashKey) -> str:
    """Return the 8 smallest keyed hashes of sites in ascending order, separated by blanks.

    Each has 12 hex digits. With the public key the result is empty, because such hashes would reveal the sites.
    """
    if key.fingerprint == HashKey.public().fingerprint:
        return ""
    found = (_keyed(site, key, b"nearstream-link", _LINK_BYTES) for site in sites)
    return " ".join(sorted(found)[:LINKS_MAX])


def recipient_hashes(message: Message, key: HashKey) -> tuple[str, ...]:
    """Return the hashes of the first 64 addresses in To and Cc, in ascending order.

    With the public key the result is empty, because such hashes would reveal the addresses.
    """
    return tuple(sorted(_hashes(message, ("to", "cc"), key)))


def address_hash(address: str, key: HashKey) -> str:
    """Return the keyed hash of a mail address in lower case, 16 hex digits.

    The hash is keyed blake2b, so nobody without the key can find the address.
    """
    return _keyed(address.strip().lower(), key, b"nearstream-addr", ADDRESS_BYTES)


def _keyed(name: str, key: HashKey, person: bytes, size: int) -> str:
    return blake2b(
        name.encode("utf-8", "surrogatepass"), digest_size=size, key=key.digest_key, person=person
    ).hexdigest()


def _hashes(message: Message, names: Iterable[str], key: HashKey) -> list[str]:
    hashes = dict.fromkeys(address_hash(address, key) for address in _addresses(message, names, key))
    return list(hashes)[:RECIPIENTS_MAX]


def _addresses(message: Message, names: Iterable[str], key: HashKey) -> list[str]:
    if key.fingerprint == HashKey.public().fingerprint:
        return []
    values = [value for name in names for value in raw_headers(message, name, _ADDRESSES_MAX_CHARACTERS)]
    text = _QUOTED.sub(" ", "\n".join(values)[:_ADDRESSES_MAX_CHARACTERS])
    return [address[0] for address in islice(_ADDRESS.finditer(text), _ADDRESSES_MAX)]


def _text(value: str) -> str:
    """Return a header as text. The parser keeps bytes that are not ASCII as surrogates."""
    return decode(value.encode("utf-8", "surrogateescape")).text


def _decoded(piece: str | bytes, charset: str | None) -> str:
    if isinstance(piece, str):
        return piece
    return decode(piece, [charset or ""]).text
