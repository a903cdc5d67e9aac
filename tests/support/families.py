"""Documents whose families are known."""

from collections.abc import Sequence
from random import Random

from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import encode_json
from nearstream.schemas.verdicts.events import PairEvent
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.store import Position
from tests.support.matching import WORDS, prose, signed

BODY = prose(1)
COPIES = ("exact_duplicate", "near_duplicate")


def edited(text: str, seed: int, edits: int = 1) -> str:
    """Return the text with some of its words replaced."""
    random, words = Random(seed), text.split()
    for at in random.sample(range(len(words)), edits):
        words[at] = random.choice(WORDS)
    return " ".join(words)


def rewritten(text: str, seed: int, count: int) -> str:
    """Return the text with this many words at its end replaced, all of them."""
    words = text.split()
    return " ".join([*words[:-count], *Random(seed).choices(WORDS, k=count)])


def campaign(copies: int, seed: int = 1) -> list[Signature]:
    """Return copies of one body that differ in a word each, about a minute apart."""
    return [signed(f"m{number}", edited(prose(seed), 100 + number), number) for number in range(copies)]


def gone(name: str) -> Arrival:
    return Arrival(f"news/{name}", None, removed_at_ms=1_790_000_000_000)


def arrivals(records: Sequence[Signature | str], first: int = 0, partition: int = 0) -> list[Arrival]:
    """Return consecutive records of a partition. A text is the id of a document to be removed."""
    return [
        Arrival(f"news/{one}", None, Position(partition, at), removed_at_ms=1_790_000_000_000 + at)
        if isinstance(one, str)
        else Arrival(one.document_key, one, Position(partition, at))
        for at, one in enumerate(records, first)
    ]


def real_traffic(random: Random, count: int, names: int) -> list[Signature | str]:
    """Return documents of few bodies: copies, edits, passages, others, updates, repeats, lineages, and removals."""
    records: list[Signature | str] = []
    last: dict[str, Signature] = {}
    for minute in range(count):
        name = f"d{random.randrange(names)}"
        if random.random() < 0.08:
            records.append(name)
            continue
        if name in last and random.random() < 0.25:
            again = with_fields(last[name], observed_at_ms=last[name].observed_at_ms + 60_000 * minute)
        else:
            lineage = random.choice([None, None, None, f"l{random.randrange(3)}"])
            again = signed(name, _some_text(random), minute + random.randrange(3), lineage)
        last[name] = with_fields(again, origin=Origin("nearstream.documents.v1", 0, minute))
        records.append(last[name])
    return records


def _some_text(random: Random) -> str:
    body, kind = prose(random.randrange(4)), random.random()
    if kind < 0.5:
        return edited(body, random.randrange(30), random.choice((1, 2, 3)))
    if kind < 0.65:
        return rewritten(body, random.randrange(30), random.choice((60, 120, 200)))
    if kind < 0.75:
        return " ".join(body.split()[100:280])
    return body if kind < 0.85 else prose(100 + random.randrange(50))


def pair_events(matched: Sequence[Matched]) -> list[PairEvent]:
    return [event for each in matched for event in each.events if isinstance(event, PairEvent)]


def lines(matched: Matched) -> list[bytes]:
    """Return what is sent, byte for byte."""
    said = [] if matched.verdict is None else [encode_json(matched.verdict)]
    return [*said, *map(encode_json, matched.events)]
