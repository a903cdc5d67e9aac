"""Fuzz the C twin for a long time, started by hand: python -m tests.fuzz_native --seconds 600."""

import argparse
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from random import Random
from time import monotonic

from nearstream.schemas.documents.document import Document
from nearstream.streams.estimates.alignment import reach_table
from nearstream.streams.estimates.comparing import compare_native, compare_numpy, fields_of
from nearstream.streams.estimates.distance import PACKED_COSTS
from nearstream.streams.estimates.passages import common_text_native, common_text_numpy
from nearstream.streams.native import native
from nearstream.streams.signing import packed_fields
from nearstream.streams.signing.native_backend import packed_context
from nearstream.streams.signing.native_unicode import unicode_tables
from nearstream.streams.signing.scheme import LABELS, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.signing.signs import found_slowly
from nearstream.streams.signing.small_keys import small_keys_slowly
from nearstream.streams.store.patching import patch_slowly, patched
from nearstream.streams.store.text_part import pack_text, unpack_text_slowly
from nearstream.workers.redis.store.entries import pack_natively, pack_slowly
from tests.support.compared import made_up
from tests.support.entered import made_up as made_up_entries
from tests.support.implementations import PUBLIC, signer_of
from tests.support.texts import MARKS, RANGES

SEEN = datetime(2026, 3, 2, tzinfo=UTC)
_TABLE = 256  # the first numbers of a context are hashes, for which any value is valid


@cache
def signers(label: str) -> tuple[Signer, Signer]:
    """Return a signer in numpy and its twin in C."""
    return signer_of("numpy", label), signer_of("native", label)


def any_text(random: Random) -> str:
    """Return a random text of a few scripts with repetition, long words and runs of marks."""
    ranges = random.sample(RANGES, random.randint(1, 3))
    size = int(10 ** random.uniform(0, 4.5))
    alphabet = [chr(random.randint(*random.choice(ranges))) for _ in range(random.choice([1, 2, 5, 40, 1000]))]
    spaces = random.choice([0, 0.01, 0.15, 0.5])
    text = "".join(" " if random.random() < spaces else random.choice(alphabet) for _ in range(size))
    if random.random() < 0.3:
        text = text[: size // 3] + random.choice(MARKS) * random.randint(1, 40) + text[size // 3 :]
    return text * random.choice([1, 1, 1, 3, 30]) if size < 3_000 else text


def compare(random: Random) -> None:
    """Sign a random text with both twins.

    Raises:
        AssertionError: The signatures differ.
    """
    text, label = any_text(random), random.choice(LABELS)
    raw = text.encode("utf-8", "surrogatepass")
    assert native.signs(raw).decode() == found_slowly(text), f"the twins find other signs in {text!r}"
    document = Document(id="x", text=text, observed_at=SEEN)
    slow, fast = (signer.sign(document) for signer in signers(label))
    assert fast == slow, f"{label}: the twins differ on {text!r}"


def meet(random: Random) -> None:
    """Compare a random text and a copy in pieces with both twins.

    Raises:
        AssertionError: The twins find different common parts.
    """
    text, signer = any_text(random), signers(random.choice(LABELS))[1]
    places = [random.randint(0, len(text)) for _ in range(6)]
    copy = text[slice(*places[:2])] + any_text(random) + text[slice(*places[2:4])] + text[slice(*places[4:])]
    both = [signer.sign(Document(id="x", text=each, observed_at=SEEN)) for each in (text, copy)]
    if all(each.n_bytes for each in both):
        found = compare_native(both[0], both[1:])
        assert found == compare_numpy(both[0], both[1:]), f"the twins differ on {text!r} and {copy!r}"


def estimate(random: Random) -> None:
    """Compare made-up signatures with both twins, and records of the index with bytes that are not valid.

    Raises:
        AssertionError: The twins estimate different numbers.
    """
    kinds, is_split = random.choice((2, 40, 1 << 19)), random.random() < 0.5
    parts = [[random.randrange(kinds) for _ in range(random.randint(0, 400))] for _ in range(3)]
    arriving, *others = (made_up(random, parts, is_split=is_split) for _ in range(6))
    documents = others
    assert compare_native(arriving, documents) == compare_numpy(arriving, documents), f"the twins differ on {others!r}"
    places = common_text_native(arriving, others[0])
    assert places == common_text_numpy(arriving, others[0]), f"the twins differ on {others[0]!r}"
    packed = bytearray(pack_text(others[0]))
    record = unpack_text_slowly(bytes(packed), 0)
    assert native.unpack_text(bytes(packed), 0) == record, f"the twins differ on {packed!r}"
    for _ in range(random.randint(1, 3)):
        packed[random.randrange(len(packed))] = random.getrandbits(8)
    with suppress(ValueError):
        text = (bytes(8), bytes(packed[: random.randint(0, len(packed))]), 0)
        native.compare(fields_of(arriving), (text,), b"\0", reach_table, PACKED_COSTS)


def differ(random: Random) -> None:
    """Turn made-up text parts into others.

    Raises:
        AssertionError: The twins return different patches, or one does not turn the one text part into the other.
    """
    kinds = random.choice((2, 5, 256))
    other = bytes(random.choices(range(kinds), k=random.randint(0, 600)))
    text = bytearray(other)
    for _ in range(random.randint(0, 8)):
        start, end = sorted(random.choices(range(len(text) + 1), k=2))
        text[start : random.choice((start, end))] = random.choices(range(kinds), k=random.randint(0, 30))
    patch = native.patch(other, bytes(text))
    assert patch == patch_slowly(other, bytes(text)), f"the twins differ on {other!r} and {text!r}"
    assert patched(other, patch) == text or not text, f"{patch!r} is no patch from {other!r} to {text!r}"


def enter(random: Random) -> None:
    """Pack made-up entries, some of them damaged.

    Raises:
        AssertionError: The twins differ.
    """
    layout, batch = made_up_entries(random)
    packed = pack_slowly(layout, b"{x:0}", batch)
    assert pack_natively(layout, b"{x:0}", batch) == packed, f"the twins differ on {batch!r}"
    damaged = [entry._replace(keys=random.randbytes(random.randint(0, 40))) for entry in batch]
    with suppress(ValueError):
        pack_natively(layout, b"{x:0}", damaged)


def take_apart(random: Random) -> None:
    """Read the packed fields of a random text, some of them damaged, with both twins.

    Raises:
        AssertionError: The twins differ.
    """
    label = random.choice(LABELS)
    signature = signers(label)[1].sign(Document(id="x", text=any_text(random), observed_at=SEEN))
    assert packed_fields.kept_parts(signature) == packed_fields.kept_parts_numpy(signature), (
        f"{label}: the twins keep other bits"
    )
    keys = PUBLIC.permutation, random.randbytes(random.randint(0, 40)), signature.anchors, 8
    assert native.small_keys(*keys) == small_keys_slowly(*keys), f"the twins find other keys of {keys!r}"
    for packed in (signature.ld, signature.ld[random.randint(0, 9) :], random.randbytes(random.randint(0, 60))):
        results = []
        for each in (native.words_end, packed_fields.words_end_numpy, native.ascends, packed_fields.ascends_numpy):
            try:
                results.append(each(packed))
            except ValueError:
                results.append(None)
        assert results[::2] == results[1::2], f"the twins differ on {packed!r}"


def abuse(random: Random) -> None:
    """Call the C functions with bytes that are not valid."""
    data = random.randbytes(int(10 ** random.uniform(0, 4)))
    context = bytearray(packed_context(preset(random.choice(LABELS), PUBLIC), PUBLIC))
    for _ in range(random.randint(0, 3)):
        place = 8 * random.randrange(_TABLE, len(context) // 8)
        number = random.choice([random.randint(0, 70), 1 << random.randint(0, 63), random.getrandbits(64)])
        context[place : place + 8] = number.to_bytes(8, "little")
    if random.random() < 0.1:
        context[: 8 * _TABLE] = bytes(8 * _TABLE)
    with suppress(ValueError):
        prepared = native.context(bytes(context))
        for piece in (
            data,
            data.decode("utf-8", "replace").encode(),
            any_text(random).encode("utf-8", "surrogatepass")[1:],
        ):
            with suppress(ValueError):
                native.sign(prepared, unicode_tables(), piece, 1 << 24)


def main() -> None:
    """Run until the time is over, or until a crash or a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    end, seed = monotonic() + chosen.seconds, chosen.seed
    while monotonic() < end:
        random = Random(seed)
        compare(random)
        meet(random)
        estimate(random)
        differ(random)
        enter(random)
        take_apart(random)
        abuse(random)
        seed += 1
    sys.stdout.write(f"{seed - chosen.seed} texts: the twins agree\n")


if __name__ == "__main__":
    main()
