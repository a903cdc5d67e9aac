"""From a complete document to its signature."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from random import Random

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer, Unsigned

KEY = HashKey.public()
OTHER_KEY = HashKey.from_secret(b"another secret of thirty-two bytes")
WITHOUT_NOISE = Signer(replace(preset("noise", KEY), noise=None), KEY)
SIGNER = Signer(preset("fine", KEY), KEY)
SEEN = datetime(2026, 3, 2, 6, 35, 0, 123_999, tzinfo=UTC)


def signer_of(label: str = "fine", key: HashKey = KEY) -> Signer:
    return Signer(preset(label, key), key)


def document(**fields: object) -> Document:
    return Document(**({"id": "x", "text": "one two three", "observed_at": SEEN} | fields))


def anchors_of(signature: Signature) -> set[bytes]:
    return {signature.anchors[start : start + 8] for start in range(0, len(signature.anchors), 8)}


def test_a_signature_takes_over_what_the_document_says() -> None:
    said = {"collection": "news", "url": "https://a.example/x", "lineage": "u", "source": "crawler"}
    signature = SIGNER.sign(document(labels={"lang": "en"}, **said), Origin("t", 2, 3), ("charset_replaced",))
    assert {name: getattr(signature, name) for name in said} == said
    assert (signature.id, signature.labels, signature.origin) == ("x", {"lang": "en"}, Origin("t", 2, 3))
    assert signature.degraded == ("charset_replaced",)
    assert signature.scheme == preset("fine", KEY).name


@pytest.mark.parametrize("name", ["id", "text", "observed_at"])
def test_an_incomplete_document_and_another_key_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: "):
        SIGNER.sign(document(**{name: None}))
    with pytest.raises(ValueError, match=r"^observed_at: "):
        SIGNER.sign(document(observed_at=SEEN.replace(tzinfo=None)))
    with pytest.raises(ValueError, match="0d3e89c8"):
        Signer(preset("fine", KEY), OTHER_KEY)


@pytest.mark.parametrize(
    ("observed_at", "milliseconds"),
    [
        (SEEN, 1_772_433_300_123),
        (SEEN.astimezone(timezone(timedelta(hours=9))), 1_772_433_300_123),
        (datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC), -1),
    ],
)
def test_times_are_whole_milliseconds_since_1970(observed_at: datetime, milliseconds: int) -> None:
    assert SIGNER.sign(document(observed_at=observed_at)).observed_at_ms == milliseconds


def test_another_key_changes_every_hash() -> None:
    text = " ".join(map(str, range(300)))
    first, second = (signer_of(key=key).sign(document(text=text)) for key in (KEY, OTHER_KEY))
    for name in ("scheme", "digest", "raw_digest", "sketch", "ld", "anchors"):
        assert getattr(first, name) != getattr(second, name)


def test_a_copy_with_a_tenth_of_its_characters_replaced_shares_sampled_windows() -> None:
    draw = Random(3)
    for size in (400, 4_000, 40_000):
        text = "".join(draw.choice("abcdefghijklmnop qrstuvwxyz ") for _ in range(size))
        copy = "".join(draw.choice("abcdefgh") if draw.random() < 0.1 else each for each in text)
        plain, more = (
            set.intersection(*(anchors_of(signer.sign(document(text=each))) for each in (text, copy)))
            for signer in (WITHOUT_NOISE, signer_of("noise"))
        )
        assert len(more - plain) >= 3


def test_of_several_documents_only_the_one_that_is_too_large_is_refused() -> None:
    signer = Signer(preset("fine", KEY), KEY, 1_000)
    texts = ["a b c", "v" * 1_001, "", "語" * 100, "\ufdfa" * 400, "last"]
    found = list(signer.sign_many(Unsigned(document(text=text), None, ("charset_replaced",)) for text in texts))
    assert [isinstance(each, InvalidMessageError) for each in found] == [False, True, False, False, True, False]
    for text, each in zip(texts, found, strict=True):
        if isinstance(each, Signature):
            assert each == signer.sign(document(text=text), None, ("charset_replaced",))
        else:
            assert each.reason is Reason.TOO_LARGE
