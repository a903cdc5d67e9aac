"""Copies, edits and rearrangements are told in many scripts, also in those that have no spaces."""

from datetime import UTC, datetime, timedelta
from random import Random

from nearstream.schemas.documents.document import Document
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.matcher import Arrival, Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import Position, local_store

KEY = HashKey.public()
SCHEME = preset(DEFAULT_LABEL, KEY)
SEEN = datetime(2026, 3, 2, 8, tzinfo=UTC)
LETTERS = {  # the first and the last code point of the letters that texts are made of, and what is between words
    "latin": (0x61, 0x7A, " "),
    "arabic": (0x628, 0x63A, " "),
    "hangul": (0xAC00, 0xD7A3, " "),
    "chinese": (0x4E00, 0x9FA5, ""),
    "thai": (0xE01, 0xE2E, ""),
}


def text(script: str, seed: int, words: int) -> str:
    random, (first, last, space) = Random(f"{script} {seed}"), LETTERS[script]
    return space.join(
        "".join(chr(random.randint(first, last)) for _ in range(random.randint(3, 8))) for _ in range(words)
    )


async def test_states_of_a_text_are_told_apart_in_every_script() -> None:
    signer = Signer(SCHEME, KEY)
    for script, (_, _, space) in LETTERS.items():
        one, more = text(script, 1, 120), text(script, 2, 12)
        half, shorter = len(one) // 2, one[:200] + one[201:400] + one[401:]
        matcher, verdicts = Matcher(local_store(), SCHEME, KEY), []
        for number, each in enumerate((one, one, shorter, one + space + more, one[half:] + one[:half])):
            seen = SEEN + timedelta(minutes=number)
            signature = signer.sign(Document(id=f"{number}", text=each, observed_at=seen, collection=script))
            (found,) = await matcher.match_all([Arrival(signature.document_key, signature, Position(0, number))])
            verdicts += [found.verdict] if found.verdict else []
        kinds = [each.verdict for each in verdicts]
        assert kinds[:4] == ["unique", "exact_duplicate", "near_duplicate", "near_duplicate"]
        assert kinds[4] in ("rearranged", "near_duplicate")
        assert all(each.resemblance and each.resemblance.value > 0.5 for each in verdicts[1:])
        assert [each.family.ordinal for each in verdicts[:3]] == [1, 2, 3]
