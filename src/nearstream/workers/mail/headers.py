"""The headers of a message that are of use: what names it, when it was sent, and by whom to whom."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from itertools import islice

from nearstream.schemas.documents.document import ADDRESS_BYTES, EPOCH, ID_PATTERN, RECIPIENTS_MAX
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.charset import decode

_SUBJECT_MAX_CHARACTERS = 4_096
_DATE_MAX_CHARACTERS = 128
_ID_MAX_CHARACTERS = 1_024
_ADDRESSES_MAX_CHARACTERS = 65_536
_ADDRESSES_MAX = 1_000
_VALUES_MAX = 64  # of one header. To find the charset of a value may take a millisecond.
_QUOTED = re.compile(r'"[^"]{0,1000}"')
_ADDRESS = re.compile(r"[^\s<>@,;:\"()\[\]\\]{1,64}@[^\s<>@,;:\"()\[\]\\]{1,255}")
_ID = re.compile(r"\A\s{0,64}(<[^<>\s]{1,510}>)")


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


def sender_domain_hash(message: Message, key: HashKey) -> str | None:
    """Return the hash of the sender's domain, or None where `sender_hash` is None."""
    addresses = _addresses(message, ("from",), key) or _addresses(message, ("sender",), key)
    return address_hash(addresses[0].rpartition("@")[2], key) if addresses else None


def recipient_hashes(message: Message, key: HashKey) -> tuple[str, ...]:
    """Return the hashes of the first 64 addresses in To and Cc, in ascending order.

    With the public key the result is empty, because such hashes would reveal the addresses.
    """
    return tuple(sorted(_hashes(message, ("to", "cc"), key)))


def address_hash(address: str, key: HashKey) -> str:
    """Return the keyed hash of a mail address in lower case, 16 hex digits.

    The hash is keyed blake2b, so nobody without the key can find the address.
    """
    data = address.strip().lower().encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=ADDRESS_BYTES, key=key.digest_key, person=b"nearstream-addr").hexdigest()


def _hashes(message: Message, names: Iterable[str], key: HashKey) -> list[str]:
    hashes = dict.fromkeys(address_hash(address, key) for address in _addresses(message, names, key))
    return list(hashes)[:RECIPIENTS_MAX]


def _addresses(message: Message, names: Iterable[str], key: HashKey) -> list[str]:
    """Return the addresses in headers, none if the key is public."""
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
