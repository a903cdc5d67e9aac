"""Small documents for index tests: every key is named, so that each test says what is shared."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

from schemas.signature import Signature
from streams.index import Admission, Admitted, Position
from streams.scheme import Keys

SCHEME = "test-1"
NO_KEYS = Keys(b"", None, (), ())
START_MS = 1_700_000_000_000


def key(kind: str, name: object) -> bytes:
    return blake2b(f"{kind}\0{name}".encode(), digest_size=8).digest()


def admission(  # noqa: PLR0913 - each test names only what it is about
    name: str,
    *,
    bands: Sequence[object] = (),
    anchors: Sequence[object] = (),
    text: object = None,
    lineage: str | None = None,
    at: int = 0,
) -> Admission:
    """A document of this id; `text` stands for its normal form (default: one of its own), `at` is in ms."""
    text = f"text of {name} {bands} {anchors}" if text is None else text
    digest = blake2b(str(text).encode(), digest_size=16).digest()
    signature = Signature(
        SCHEME, "default", name, digest, digest, START_MS + at, 1, 1, 1, 1, False, b"\1", 16, b"", b"", b"", lineage
    )
    keys = Keys(
        key("digest", text),
        None if lineage is None else key("lineage", lineage),
        tuple(key("band", one) for one in bands),
        tuple(key("anchor", one) for one in anchors),
    )
    return Admission(f"default/{name}", signature, keys)


def removal(name: str) -> Admission:
    return Admission(f"default/{name}", None, NO_KEYS)


def at_offset(one: Admission, offset: int, previous: int | None = None, partition: int = 0) -> Admission:
    return replace(one, position=Position(partition, offset, offset - 1 if previous is None else previous))


def in_order(batch: Sequence[Admission], first: int = 0) -> list[Admission]:
    """The batch as consecutive records of partition 0."""
    return [at_offset(one, first + step) for step, one in enumerate(batch)]


def ids(answer: Admitted) -> list[str]:
    return [candidate.signature.id for candidate in answer.candidates]
