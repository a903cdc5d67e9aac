"""The header of a message or of a part of it, where it ends, and what it says about its content.

It is read here and not by the standard library, of which two patch releases read some headers differently, so that two
workers would sign one message differently.
"""

import re
from typing import NamedTuple

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
_ENCODING = re.compile(rb"base64|quoted[ _-]?printable|(?:x-)?uu(?:encode)?\b|(?:x-)?uue\b", re.IGNORECASE)
_INLINE = re.compile(rb"\A[\s\"']*+(?:inline|\Z)", re.IGNORECASE)
_NAMED = re.compile(rb"\b(?:file)?name\*?\d*\*?\s*+=", re.IGNORECASE)
TEXT, HTML, UNKNOWN = "text/plain", "text/html", ""
# What programs write for the whole of a type.
_ALONE = {
    **{kind: f"{kind}/octet-stream" for kind in ("application", "audio", "font", "image", "model", "video")},
    **{kind: f"multipart/{kind}" for kind in ("alternative", "mixed", "related", "report", "signed")},
    **{"multipart": "multipart/mixed", "html": HTML, "text": TEXT, "plain": TEXT, "message": "message/rfc822"},
}
_MAIN_TYPES = {*(kind.partition("/")[0] for kind in _ALONE.values()), "chemical", "x-world"}


class Head(NamedTuple):
    """What the header of a part says about its content."""

    kind: str  # the media type in lower case, `text/plain` if none is declared, empty if it cannot be understood
    is_valid: bool  # the type is missing, or is written as it ought to be, and each line is one of a field
    boundary: bytes  # Of a multipart: what separates its parts. Empty if it is not declared.
    label: str  # the declared charset, or an empty text
    encoding: str  # `base64`, `quoted-printable`, `uuencode`, or empty for none
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
    return Head(
        kind,
        is_valid,
        re.sub(rb"\\(.)", rb"\1", boundary[1] or boundary[2]).rstrip() if boundary else b"",
        charset[1].strip(b"'").rpartition(b"'")[2].decode("latin-1") if charset else "",
        _encoding(encoding[0].lower()) if encoding else "",
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


def _encoding(name: bytes) -> str:
    return "base64" if name == b"base64" else "quoted-printable" if name.startswith(b"quoted") else "uuencode"
