"""Comparing equals the reference, bit by bit, and refuses invalid input."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from random import Random
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearstream.schemas.documents.document import Document
from nearstream.streams.estimates.comparing import compare, estimate, reach_table, unrelated_costs
from nearstream.streams.estimates.estimate import PACKED, unpack_estimates
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.native import native
from nearstream.streams.signing.scheme import LABELS, preset
from nearstream.streams.signing.signer import Signer
from tests.fuzz_native import agrees
from tests.support.compared import BASE, made_of, made_up
from tests.support.made_up import sign, with_noise, words

EXAMPLES = Path(__file__).parents[2] / "examples" / "documents.jsonl"
KEY = HashKey.public()
FIELDS = (BASE.digest, BASE.n_bytes, BASE.characters, BASE.words, BASE.shingles, False, BASE.sketch, BASE.rate)
ARRIVING = (*FIELDS, BASE.ld, BASE.gaps)


@pytest.mark.parametrize("label", LABELS)
def test_c_agrees_on_every_pair_of_examples(label: str) -> None:
    scheme = preset(label, KEY)
    signer = Signer(scheme, KEY)
    with EXAMPLES.open(encoding="utf-8") as lines:
        texts = [json.loads(line) for line in islice(lines, 40)]
    seen = datetime(2026, 3, 2, tzinfo=UTC)
    signed = [signer.sign(Document(id=each["id"], text=each["text"], observed_at=seen)) for each in texts]
    kept = [scheme.kept(each) for each in signed]
    for arriving in (*kept[::3], *signed[::9]):
        agrees(arriving, kept)


def test_c_agrees_on_noise_moves_and_lengths() -> None:
    text = words(1, 1500)
    others = [with_noise(" ".join(text), share / 50, share) for share in range(16)]
    others += [" ".join(text[place:] + text[:place]) for place in range(100, 1500, 200)]
    others += [" ".join(text[place : place + 2 * place]) for place in range(1, 700, 60)]
    signed = [sign(each, f"b{number}") for number, each in enumerate(others)]
    for arriving in (sign(text), *signed[::5]):
        agrees(arriving, [each for each in signed if each is not arriving])


def test_nothing_is_compared_with_nothing() -> None:
    assert compare(BASE, []) == b""


def test_what_one_comparison_left_does_not_change_the_next() -> None:
    random = Random(5)
    parts = [[random.randrange(1 << 19) for _ in range(200)] for _ in range(3)]
    others = [made_up(random, parts, is_split=False) for _ in range(40)]
    arriving = made_up(random, parts, is_split=False)
    found = unpack_estimates(compare(arriving, others))
    assert found == [estimate(arriving, other) for other in others]


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        *((0, bytes(size)) for size in (0, 15, 17)),
        *((number, value) for number in (1, 2, 3, 4, 7) for value in (-1, 1 << 49)),
        *((number, 0) for number in (1, 2)),
        *((6, bytes(size)) for size in (0, 63, 65, 127, 192, 1024)),
        *((7, rate) for rate in (3, 12)),
        *((8, ld) for ld in (b"123", b"\xff" * 4, bytes((1 << 19) + 4))),
        *((9, gaps) for gaps in (b"\x80", b"\x01", b"\x80" * 7)),
    ],
)
def test_what_is_no_signature_is_refused(place: int, wrong: object) -> None:
    fields = (*ARRIVING[:place], wrong, *ARRIVING[place + 1 :])
    for arguments in ((fields, (ARRIVING,)), (ARRIVING, (fields,))):
        with pytest.raises(ValueError, match="expected"):
            native.compare(*arguments, b"\0", reach_table, unrelated_costs())


def test_other_arguments_are_refused() -> None:
    good = [ARRIVING, (ARRIVING,), b"\0", reach_table, unrelated_costs()]
    for place, wrong in ((0, ()), (0, []), (1, (None,)), (1, [ARRIVING]), (2, b""), (2, b"\0\0"), (4, b"")):
        with pytest.raises((TypeError, ValueError)):
            native.compare(*good[:place], wrong, *good[place + 1 :])
    for reach in (None, lambda rate: None, lambda rate: b""):
        with pytest.raises((TypeError, ValueError)):
            native.compare(*good[:3], reach, unrelated_costs())


@given(st.binary(max_size=300), st.binary(max_size=90), st.sampled_from((0, 1, 8, 64, 1 << 30)), st.booleans())
@settings(max_examples=300)
def test_any_bytes_are_compared_or_refused(ld: bytes, gaps: bytes, rate: int, is_other_split: bool) -> None:
    fields = (*FIELDS[:7], rate, ld[: len(ld) // 4 * 4], b"")
    split = (*FIELDS[:7], rate, ld[: len(ld) // 2 * 2], gaps)
    for arriving in (fields, split):
        with suppress(ValueError):
            others = (split if is_other_split else fields, ARRIVING)
            assert len(native.compare(arriving, others, b"\0\1", reach_table, unrelated_costs())) == 2 * PACKED.size


def test_texts_that_repeat_themselves_are_compared_in_no_more_time() -> None:
    repeated = [7, 9] * 1024
    texts = (repeated, [5, *[9, 7, 7] * 682, 6]), (list(range(2048)), [5, *range(0, 2048, 2), *range(1, 2048, 2)])
    taken = []
    for one, other in texts:
        arriving, earlier = made_of(one), made_of(other)
        began = process_time()
        for _ in range(20):
            compare(arriving, [earlier])
        taken.append(process_time() - began)
    assert taken[0] < 10 * taken[1]
