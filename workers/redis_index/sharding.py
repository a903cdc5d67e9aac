"""Route the documents of a batch to the shards of an index."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.contract import Admission, Admitted, Position
from nearstream.streams.index.family import Decision, Family, Pair, Settled, Settlement
from nearstream.workers.redis_index.layout import NUMBER_BYTES
from nearstream.workers.redis_index.shard import Item

_SHARD_SHIFT = 8 * NUMBER_BYTES  # above a number, the bits of its shard


@dataclass(frozen=True)
class ShardBatch:
    """The part of a batch that one shard gets.

    Attributes:
        items: Admissions of documents of this shard, and positions of others.
        positions: Positions in the batch of the admissions, in order.
    """

    items: list[Item]
    positions: list[int]


def shard_of(document_key: str, shards: int) -> int:
    """Return the shard of a document, which depends on its collection alone."""
    collection = document_key.partition("/")[0]
    return int.from_bytes(blake2b(collection.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big") % shards


def route(batch: Sequence[Admission], shards: int) -> list[ShardBatch]:
    """Return the part of the batch for each shard.

    Each shard gets every offset of the batch, as a bare position where another shard has the document. So the
    checkpoints of all shards advance together, and a checkpoint that stays behind shows that its shard lost something.
    """
    split = [ShardBatch([], []) for _ in range(shards)]
    sent = [dict[int, int]() for _ in range(shards)]  # by shard, then by partition: the last offset sent
    last: dict[int, Position] = {}
    for index, admission in enumerate(batch):
        own = shard_of(admission.document_key, shards)
        split[own].positions.append(index)
        split[own].items.append(_chained(admission, own, sent, last))
    for share, offsets in zip(split, sent, strict=True):
        share.items.extend(
            Position(partition, position.offset, offsets[partition])
            for partition, position in last.items()
            if offsets[partition] < position.offset
        )
    return split


def _chained(admission: Admission, own: int, sent: list[dict[int, int]], last: dict[int, Position]) -> Admission:
    """Return the admission with the previous offset that its shard was sent."""
    position = admission.position
    if position is None:
        return admission
    before = last.get(position.partition)
    for offsets in sent:
        offsets.setdefault(position.partition, position.previous)
    own_offsets = sent[own]
    previous = position.previous
    # An offset that no shard was sent is a gap of the batch itself, which the server has to notice.
    if before is None or previous <= before.offset:
        previous = min(previous, own_offsets[position.partition])
    own_offsets[position.partition] = max(own_offsets[position.partition], position.offset)
    if before is None or position.offset > before.offset:
        last[position.partition] = position
    return replace(admission, position=replace(position, previous=previous))


def answer_of_shard(answer: Admitted, shard: int) -> Admitted:
    """Return the answer of a shard with numbers that include the shard."""
    if not shard:
        return answer
    previous = answer.previous and candidate_of_shard(answer.previous, shard)
    candidates = tuple(candidate_of_shard(candidate, shard) for candidate in answer.candidates)
    number, presumed = (each and number_of_shard(each, shard) for each in (answer.number, answer.presumed))
    decision = answer.decision and _decision_of_shard(answer.decision, shard)
    return replace(
        answer, number=number, previous=previous, candidates=candidates, presumed=presumed, decision=decision
    )


def settlement_in_shard(settlement: Settlement) -> Settlement:
    """Return a settlement with the numbers that its shard knows."""
    number, joins = (shard_and_number(each)[1] for each in (settlement.number, settlement.joins))
    pairs = tuple(replace(pair, number=shard_and_number(pair.number)[1]) for pair in settlement.pairs)
    return replace(settlement, number=number, joins=joins, pairs=pairs)


def settled_of_shard(settled: Settled, shard: int) -> Settled:
    """Return the answer of a shard to a settlement, with numbers that include the shard."""
    family = settled.family and _family_of_shard(settled.family, shard)
    return replace(settled, family=family, follow=settled.follow and candidate_of_shard(settled.follow, shard))


def _decision_of_shard(decision: Decision, shard: int) -> Decision:
    pairs = tuple(_pair_of_shard(pair, shard) for pair in decision.pairs)
    return replace(decision, family=_family_of_shard(decision.family, shard), pairs=pairs)


def _pair_of_shard(pair: Pair, shard: int) -> Pair:
    candidate = pair.candidate and candidate_of_shard(pair.candidate, shard)
    return replace(pair, number=number_of_shard(pair.number, shard), candidate=candidate)


def _family_of_shard(family: Family, shard: int) -> Family:
    return replace(family, number=number_of_shard(family.number, shard))


def candidate_of_shard(candidate: Candidate, shard: int) -> Candidate:
    """Return the candidate with a number that includes the shard."""
    return replace(candidate, number=number_of_shard(candidate.number, shard))


def number_of_shard(number: int, shard: int) -> int:
    """Return a number that includes the shard."""
    return shard << _SHARD_SHIFT | number


def shard_and_number(number: int) -> tuple[int, int]:
    """Return the shard that a number includes, and the shard's own number."""
    return number >> _SHARD_SHIFT, number & ((1 << _SHARD_SHIFT) - 1)
