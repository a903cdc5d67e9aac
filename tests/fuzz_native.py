"""Fuzz the C code for a long time, started by hand: python -m tests.fuzz_native --seconds 600."""

import argparse
import sys
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from time import monotonic

from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import VERSION_BYTES, Signature
from nearstream.streams.estimates import comparing
from nearstream.streams.estimates.comparing import fields_of, reach_table, unrelated_costs
from nearstream.streams.estimates.estimate import unpack_estimates
from nearstream.streams.estimates.passages import common_text, cover
from nearstream.streams.fingerprints.unicode_tables import unicode_tables
from nearstream.streams.native import native
from nearstream.streams.signing.scheme import LABELS, preset
from nearstream.streams.signing.signer import packed_context
from nearstream.streams.store.record import Recorded, pack_signature, pack_text, patched, unpack_record
from tests.reference import covering, passages, patching, signs, text_part
from tests.reference import estimate as estimates
from tests.reference.signing import PUBLIC, signers
from tests.support.compared import made_up
from tests.support.texts import MARKS, RANGES

SEEN = datetime(2026, 3, 2, tzinfo=UTC)
_TABLE = 256  # the first numbers of a context are hashes, for which any value is valid


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
    """Sign a random text as the reference does."""
    text, label = any_text(random), random.choice(LABELS)
    raw = text.encode("utf-8", "surrogatepass")
    assert native.signs(raw).decode() == signs.found(text), f"other signs found in {text!r}"
    document = Document(id="x", text=text, observed_at=SEEN)
    expected, found = (signer.sign(document) for signer in signers(label))
    assert found == expected, f"{label}: another signature of {text!r}"


def meet(random: Random) -> None:
    """Compare a random text and a copy in pieces as the reference does."""
    text, signer = any_text(random), signers(random.choice(LABELS))[1]
    places = [random.randint(0, len(text)) for _ in range(6)]
    copy = text[slice(*places[:2])] + any_text(random) + text[slice(*places[2:4])] + text[slice(*places[4:])]
    both = [signer.sign(Document(id="x", text=each, observed_at=SEEN)) for each in (text, copy)]
    if all(each.n_bytes for each in both):
        found = unpack_estimates(comparing.compare(both[0], both[1:]))
        assert found == [estimates.estimate(*both)], f"another estimate of {text!r} and {copy!r}"


def agrees(arriving: Signature, others: list[Signature]) -> None:
    """Compare a signature with others, and with their records, as the reference does."""
    expected = [estimates.estimate(arriving, other) for other in others]
    packed, recorded = comparing.compare(arriving, others), list(map(_recorded, others))
    found = unpack_estimates(packed)
    assert packed == comparing.compare(arriving, recorded), f"other estimates of records {others!r}"
    assert found == expected, f"other estimates of {others!r}"
    assert [list(map(type, each)) for each in found] == [list(map(type, each)) for each in expected]
    covers = [covering.cover(arriving, other) for other in others]
    assert cover(arriving, others) == cover(arriving, recorded) == covers, f"other parts found in {others!r}"


def _recorded(signature: Signature) -> Recorded:
    """Return a document as the index keeps it, with its text still packed."""
    packed = pack_signature(signature)
    return unpack_record(packed, signature.scheme, signature.digest[:VERSION_BYTES], signature.observed_at_ms)


def estimate(random: Random) -> None:
    """Compare made-up signatures as the reference does, and records of the index with bytes that are not valid."""
    kinds, is_split = random.choice((2, 40, 1 << 19)), random.random() < 0.5
    parts = [[random.randrange(kinds) for _ in range(random.randint(0, 400))] for _ in range(3)]
    arriving, *others = (made_up(random, parts, is_split=is_split) for _ in range(6))
    if random.random() < 0.5:
        arriving, *others = (with_fields(each, spaceless=True) for each in (arriving, *others))
    agrees(arriving, others)
    places = common_text(arriving, others[0])
    assert places == passages.common_text(arriving, others[0]), f"other places found in {others[0]!r}"
    native.share_only_an_end(fields_of(arriving), fields_of(others[0]))
    packed = bytearray(pack_text(others[0]))
    record = text_part.unpack_text(bytes(packed), 0)
    assert native.unpack_text(bytes(packed), 0) == record, f"another text part read from {packed!r}"
    for _ in range(random.randint(1, 3)):
        packed[random.randrange(len(packed))] = random.getrandbits(8)
    with suppress(ValueError):
        text = (bytes(8), bytes(packed[: random.randint(0, len(packed))]), 0)
        native.compare(fields_of(arriving), (text,), b"\0", reach_table, unrelated_costs())


def differ(random: Random) -> None:
    """Turn made-up text parts into others."""
    kinds = random.choice((2, 5, 256))
    other = bytes(random.choices(range(kinds), k=random.randint(0, 600)))
    text = bytearray(other)
    for _ in range(random.randint(0, 8)):
        start, end = sorted(random.choices(range(len(text) + 1), k=2))
        text[start : random.choice((start, end))] = random.choices(range(kinds), k=random.randint(0, 30))
    patch = native.patch(other, bytes(text))
    assert patch == patching.patch(other, bytes(text)), f"another patch from {other!r} to {text!r}"
    assert patched(other, patch) == text or not text, f"{patch!r} is no patch from {other!r} to {text!r}"


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
                native.normal_form(unicode_tables(), piece, 30, 5)


CHECKS = (compare, meet, estimate, differ, abuse)


def main() -> None:
    """Run until the time is over, or until a crash or a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    end, seed = monotonic() + chosen.seconds, chosen.seed
    while monotonic() < end:
        random = Random(seed)
        for check in CHECKS:
            check(random)
        seed += 1
    sys.stdout.write(f"{seed - chosen.seed} texts, all as in the reference\n")


if __name__ == "__main__":
    main()
