"""Documents in many scripts get equal verdicts and events in memory and through Redis."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.matcher import Arrival, Matched, Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import Position, local_store
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.address import IndexAddress

KEY = HashKey.public()
SCHEME = preset(DEFAULT_LABEL, KEY)
SEEN = datetime(2026, 3, 2, 8, tzinfo=UTC)
LETTERS = {  # the first and the last code point of the letters that texts are made of
    "latin": (0x61, 0x7A),
    "arabic": (0x628, 0x63A),
    "hangul": (0xAC00, 0xD7A3),
    "chinese": (0x4E00, 0x9FA5),
    "thai": (0xE01, 0xE2E),
}
SPACELESS = ("chinese", "thai")


def text(script: str, seed: int, letters: int = 600) -> str:
    random, (first, last) = Random(f"{script} {seed}"), LETTERS[script]
    words = [
        "".join(chr(random.randint(first, last)) for _ in range(random.randint(3, 8))) for _ in range(letters // 5)
    ]
    return ("" if script in SPACELESS else " ").join(words)


def states(script: str) -> list[str]:
    """Return a text, an equal one, and those with a few letters taken out, with more, and with halves exchanged."""
    one, half = text(script, 1), len(text(script, 1)) // 2
    shorter = one[:200] + one[201:400] + one[401:]
    return [
        one,
        one,
        shorter,
        one + ("" if script in SPACELESS else " ") + text(script, 2, 60),
        one[half:] + one[:half],
    ]


async def matched(matcher: Matcher, script: str) -> list[Matched]:
    signer, found = Signer(SCHEME, KEY), []
    for number, each in enumerate(states(script)):
        seen = SEEN + timedelta(minutes=number)
        signature = signer.sign(Document(id=f"{script}-{number}", text=each, observed_at=seen, collection=script))
        arrival = Arrival(signature.document_key, signature, Position(0, number))
        found += await matcher.match_all([arrival])
    return found


@pytest.mark.parametrize("script", LETTERS)
async def test_a_script_gets_equal_verdicts_in_memory_and_through_redis(script: str, redis_url: str) -> None:
    address = IndexAddress(redis_url, f"test-scripts-{script}-{id(script)}", SCHEME.name, KEY.fingerprint)
    index = await RedisIndex.open(address, partitions=1, may_create=True)
    try:
        stored = await matched(Matcher(index.store(), SCHEME, KEY), script)
    finally:
        await index.close()
    kept = await matched(Matcher(local_store(), SCHEME, KEY), script)

    assert [each.verdict for each in stored] == [each.verdict for each in kept]
    assert [each.events for each in stored] == [each.events for each in kept]
    verdicts = [each.verdict for each in stored if each.verdict]
    assert [each.verdict for each in verdicts[:4]] == ["unique", "exact_duplicate", "near_duplicate", "near_duplicate"]
    assert verdicts[4].verdict in ("rearranged", "near_duplicate")
    assert all(each.resemblance and each.resemblance.value > 0.5 for each in verdicts[1:])
    assert [each.family.ordinal for each in verdicts[:3]] == [1, 2, 3]
