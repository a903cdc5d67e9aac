"""Who of a batch belongs to which part of an index."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from streams.index import Admission, Admitted, Candidate, Position
from workers.redis_part import Item

_PART_SHIFT = 40  # numbers of a part have 5 bytes


@dataclass(frozen=True)
class Share:
    """What one part is sent of a batch, and which places of the batch its answers belong to."""

    items: list[Item]
    places: list[int]


def part_of(document_key: str, parts: int) -> int:
    """The part of a document: a function of its collection alone."""
    collection = document_key.partition("/")[0]
    return int.from_bytes(blake2b(collection.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big") % parts


def shares(batch: Sequence[Admission], parts: int) -> list[Share]:
    """The batch by part.

    Each part is told of every offset of the batch, by a position alone where another part has the document. So all
    checkpoints go on together, and one that stays behind shows that its part lost something.
    """
    split = [Share([], []) for _ in range(parts)]
    seen = [dict[int, int]() for _ in range(parts)]  # by part, then by partition: the last offset told
    last: dict[int, Position] = {}
    for place, admission in enumerate(batch):
        own = part_of(admission.document_key, parts)
        split[own].places.append(place)
        split[own].items.append(_chained(admission, own, seen, last))
    for share, told in zip(split, seen, strict=True):
        share.items.extend(
            Position(partition, position.offset, told[partition])
            for partition, position in last.items()
            if told[partition] < position.offset
        )
    return split


def _chained(admission: Admission, own: int, seen: list[dict[int, int]], last: dict[int, Position]) -> Admission:
    """The admission as the next one of its part, which was not sent those between."""
    position = admission.position
    if position is None:
        return admission
    before = last.get(position.partition)
    for told in seen:
        told.setdefault(position.partition, position.previous)
    told = seen[own]
    previous = position.previous
    # An offset that nobody was sent is a gap of the batch itself: the server has to see it.
    if before is None or previous <= before.offset:
        previous = min(previous, told[position.partition])
    told[position.partition] = max(told[position.partition], position.offset)
    if before is None or position.offset > before.offset:
        last[position.partition] = position
    return replace(admission, position=replace(position, previous=previous))


def named_by_part(answer: Admitted, part: int) -> Admitted:
    """The answer with numbers that tell their part."""
    if not part:
        return answer
    previous = answer.previous and candidate_of_part(answer.previous, part)
    candidates = tuple(candidate_of_part(each, part) for each in answer.candidates)
    number = answer.number and number_of_part(answer.number, part)
    return replace(answer, number=number, previous=previous, candidates=candidates)


def candidate_of_part(candidate: Candidate, part: int) -> Candidate:
    """The candidate with a number that tells its part."""
    return replace(candidate, number=number_of_part(candidate.number, part))


def number_of_part(number: int, part: int) -> int:
    """A number that tells its part."""
    return part << _PART_SHIFT | number


def part_and_number(number: int) -> tuple[int, int]:
    """The part that a number tells, and the part's own number."""
    return number >> _PART_SHIFT, number & ((1 << _PART_SHIFT) - 1)
