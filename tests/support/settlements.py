"""Random decisions, in the forms that a matcher sends."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from nearstream.streams.counterpart import own_family
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import Sending, Settled, Settlement
from nearstream.streams.store.limits import Admission, Admitted
from nearstream.streams.store.registration import Status
from tests.support.index_documents import AnyIndex, pair, settlement

RELATIONS = ("near_duplicate", "version", "overlap", "containment")
_ADMITTED = (Status.NEW, Status.UPDATED, Status.REPLAYED)


async def decide(
    random: Random, batch: Sequence[Admission], answers: Sequence[Admitted], indexes: Sequence[AnyIndex], now_ms: int
) -> None:
    """Let the same random decisions be made in several indexes, and require equal answers."""
    told: list[Settlement] = []
    for one, answer in zip(batch, answers, strict=True):
        if answer.status in _ADMITTED and answer.decision is None and one.signature and random.random() > 0.03:
            told.append(await _decision(random, one, answer, indexes))
    for _ in range(3):
        replies = [list(await index.settle(told, now_ms)) for index in indexes]
        assert all(reply == replies[0] for reply in replies)
        told = [again for one, reply in zip(told, replies[0], strict=True) if (again := _again(random, one, reply))]


async def _decision(random: Random, one: Admission, answer: Admitted, indexes: Sequence[AnyIndex]) -> Settlement:
    presumed, known = answer.presumed, [*answer.candidates, *([answer.previous] if answer.previous else [])]
    if presumed and random.random() < 0.25:
        entered = [list(await index.enter([(answer.number, one)])) for index in indexes]
        assert all(reply == entered[0] for reply in entered)
        presumed, known = 0, [*known, *entered[0][0]]
    candidates = list({each.number: each for each in known}.values())
    random.shuffle(candidates)
    related = [
        pair(each, random.choice(RELATIONS), random.choice(list(Sending)))
        for each in candidates
        if random.random() < 0.7
    ]
    joins = next((each for each in candidates if each.number == presumed), None) or _some(random, one, candidates)
    keeps = answer.previous is not None and (joins == answer.previous or random.random() < 0.5)
    joins = answer.previous if keeps else joins
    is_exact = joins is not None and _is_exact(one, joins)
    return settlement(one, answer, joins, related, is_exact=is_exact, keeps=keeps)


def _some(random: Random, one: Admission, candidates: Sequence[Candidate]) -> Candidate | None:
    fit = (each for each in candidates if (each.represents or _is_exact(one, each)) and random.random() < 0.5)
    return next(fit, None)


def _is_exact(one: Admission, candidate: Candidate) -> bool:
    return one.signature is not None and candidate.signature.digest == one.signature.digest


def _again(random: Random, told: Settlement, reply: Settled) -> Settlement | None:
    """Return what is told once more if the family could not be joined like this."""
    alone = own_family(0, told.arriving)
    founding = replace(
        told, joins=0, is_exact=False, keeps=False, family_id=alone.family_id, first_seen_ms=alone.first_seen_ms
    )
    if reply.follow is None:
        return founding if reply.is_refused else None
    if random.random() < 0.6:
        family = own_family(0, reply.follow.signature)
        return replace(founding, joins=reply.follow.number, family_id=family.family_id)
    return replace(told, is_exact=False) if told.is_exact else founding


def overlaps(batch: Sequence[Admission], answers: Sequence[Admitted], most: int = 2) -> list[Settlement]:
    """Return decisions of documents that overlap with their best candidates and found families."""
    return [
        settlement(one, answer, related=[pair(each, "overlap", Sending.ALWAYS) for each in answer.candidates[:most]])
        for one, answer in zip(batch, answers, strict=True)
        if answer.number and answer.status is not Status.UNCHANGED and one.signature is not None
    ]
