"""Matcher: signatures become verdicts and events, through a store."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import count

from nearstream.schemas.events import RELATIONS
from nearstream.schemas.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.index.family import Family
from nearstream.streams.judge import Arriving, Documents, Rules, own_family_id
from nearstream.streams.matcher import Arrival
from nearstream.streams.matching.case import Case
from nearstream.streams.matching.decision import founder_of
from nearstream.streams.matching.lane import Lane, Patience
from nearstream.streams.matching.meeting import Known, Pause
from nearstream.streams.records.record import pack_signature, unpack_signature
from nearstream.streams.relations.describe import retraction
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS, Thresholds
from nearstream.streams.signing.scheme import Keys, Scheme
from nearstream.streams.store.messages import ANCHOR, BAND, DIGEST, LINEAGE, Mark, Query, View
from nearstream.streams.store.registration import (
    DOCUMENT_BYTES,
    Labelling,
    Order,
    Put,
    Registered,
    Removal,
    Status,
)
from nearstream.streams.store.store import Store
from nearstream.streams.telling import Matched, Teller

RECORDS_CAP = 4_096  # records that a matcher remembers


async def _no_pause() -> None:
    """Continue at once."""


async def _no_patience(turn: int, is_smaller: bool) -> bool:
    """Do not wait, because there is no other lane."""
    return False


class LaneMatcher:
    """Finds how arriving documents relate to earlier ones."""

    def __init__(
        self,
        store: Store,
        scheme: Scheme,
        key: HashKey,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
        relations: frozenset[str] = frozenset(RELATIONS),
        patience: Patience = _no_patience,
    ) -> None:
        """Create a matcher.

        Args:
            store: The store that holds the earlier documents.
            scheme: The scheme of all signatures.
            key: The key of the scheme, with which index keys are made.
            thresholds: Thresholds of the rules.
            relations: Names of the relations to be sent.
            patience: Waits for other lanes.
        """
        self._store, self._scheme, self._key, self._patience = store, scheme, key, patience
        self.documents = Documents(Rules(scheme, thresholds, relations, store.limits))
        every_pair = not store.limits.events_per_family
        self._teller = Teller(self.documents, scheme.name, relations, every_pair=every_pair)
        self._offsets = count()  # of documents that come from no topic
        self._records: dict[int, bytes] = {}  # of states that were met lately, the first one met in front

    async def match(self, signature: Signature) -> Matched:
        """Match one document and return its verdict, with its events."""
        (matched,) = await self.match_all([Arrival(signature.document_key, signature)])
        return matched

    async def match_all(self, arrivals: Sequence[Arrival], pause: Pause = _no_pause) -> list[Matched]:
        """Match documents in order and return the result of each.

        The store has recorded all decisions before this returns.
        """
        return [each for run in _runs(arrivals) for each in await self._match_run(run, pause)]

    async def _match_run(self, arrivals: Sequence[Arrival], pause: Pause) -> list[Matched]:
        lane = Lane(self._store, self.documents, self._patience, pause)
        arriving = [self._arriving(arrival) for arrival in arrivals]
        messages = [self._message(*each) for each in zip(arrivals, arriving, strict=True)]
        await pause()
        answers = await lane.register(messages)
        cases = {
            message.number: _case(one, message.number, answer)
            for message, one, answer in zip(messages, arriving, answers, strict=True)
            if one is not None and _is_state(message.number, answer)
        }
        known = await lane.match(list(cases.values()), self._records)
        await self._mark(messages, answers, cases)
        await self._know(answers, cases, known)
        results = []
        for arrival, one, message, answer in zip(arrivals, arriving, messages, answers, strict=True):
            results.append(await self._matched(arrival, one, cases.get(message.number), answer, known, pause))
        while len(self._records) > RECORDS_CAP:
            del self._records[next(iter(self._records))]
        return results

    def _arriving(self, arrival: Arrival) -> Arriving | None:
        if arrival.signature is None:
            return None
        keys = self._scheme.keys(arrival.signature, self._key)
        return Arriving(self._scheme.kept(arrival.signature), keys)

    def _message(self, arrival: Arrival, arriving: Arriving | None) -> Put | Removal | Labelling:
        """Return the message to the store for an arrival."""
        position = arrival.position
        number = self._store.shape.number(
            *(position.partition, position.offset) if position else (0, next(self._offsets))
        )
        document = blake2b(arrival.document_key.encode("utf-8", "surrogatepass"), digest_size=DOCUMENT_BYTES).digest()
        if arriving is None and arrival.labelling is not None:
            return Labelling(number, document, _pack_label(arrival))
        if arriving is None:
            removal = arrival.removal
            return Removal(number, document, *((removal.partition, removal.offset) if removal else (-1, 0)))
        signature = arriving.signature
        origin, version = signature.origin, bytes.fromhex(signature.version)
        place = (origin.partition, origin.offset) if origin else (-1, 0)
        order = Order(signature.observed_at_ms, *place, version)
        return Put(number, document, order, len(arriving.keys.anchors), pack_signature(signature, True))

    async def _mark(
        self, messages: Sequence[Put | Removal | Labelling], answers: Sequence[Registered], cases: dict[int, Case]
    ) -> None:
        """Add labels to the families of the labelled documents."""
        marks = []
        for message, answer in zip(messages, answers, strict=True):
            case = cases.get(answer.number)
            decision = case.decision if case else None
            founder = decision.founder if decision else founder_of(answer.decision) if answer.decision else 0
            if founder and (answer.label or answer.status is Status.LABELLED):
                marks.append(Mark(founder, message.document, answer.number, answer.label))
        if marks:
            await self._store.mark(marks)

    async def _know(self, answers: Sequence[Registered], cases: dict[int, Case], known: Known) -> None:
        """Read the records of founders, and of states that arrived again, which verdicts name."""
        founders = {case.decision.founder for case in cases.values() if case.decision} - cases.keys()
        again = {answer.number for answer in answers if answer.status is Status.UNCHANGED}
        wanted = sorted(each for each in founders | again if not known.has_text(each))
        found = await self._store.fetch([Query(number, record=True) for number in wanted]) if wanted else ()
        for number, view in zip(wanted, found, strict=True):
            if view is not None:
                known.views[number] = view
                if view.record is not None:
                    known.records[number] = view.record

    async def _matched(
        self,
        arrival: Arrival,
        arriving: Arriving | None,
        case: Case | None,
        answer: Registered,
        known: Known,
        pause: Pause,
    ) -> Matched:
        if arriving is None:
            return self._removed(arrival, answer)
        if answer.status is Status.OVERTAKEN:
            return Matched(None, (), answer)
        if answer.status is Status.UNCHANGED:
            return await self._unchanged(arriving.signature, answer, known)
        if case is None:
            raise AssertionError(f"{arrival.document_key!r}: a state that was registered has a case")
        return await self._teller.told(case, known, pause)

    def _removed(self, arrival: Arrival, answer: Registered) -> Matched:
        """Return the retraction of a removed document, if the store had it."""
        if answer.status is not Status.REMOVED or not answer.was_known or arrival.removed_at_ms is None:
            return Matched(None, (), answer)
        event = retraction(arrival.document_key, arrival.removed_at_ms, self._scheme.name, arrival.removal)
        return Matched(None, (event,), answer)

    async def _unchanged(self, own: Signature, answer: Registered, known: Known) -> Matched:
        view = known.views.get(answer.number)
        if view is None or not known.has_text(answer.number):
            return Matched(None, (), answer)  # it was removed or has expired meanwhile
        packed, order = known.records[answer.number], view.order
        same = unpack_signature(packed, self._scheme.name, order.version, order.observed_ms)
        family = await self._family(answer.number, same, view)
        return self._teller.unchanged(own, same, family, answer)

    async def _family(self, number: int, same: Signature, view: View) -> Family:
        """Return the family of a stored state."""
        founder = founder_of(view.decision) if view.decision is not None else number
        own = Family(number, own_family_id(same, self._scheme.name), 1, same, same.observed_at_ms)
        if founder == number:
            return own
        (found,) = await self._store.fetch([Query(founder, number, record=True)])
        if found is None or found.family is None:
            return own
        first = None
        if found.record is not None:
            first = unpack_signature(found.record, self._scheme.name, found.order.version, found.order.observed_ms)
        seen = found.family
        return Family(founder, seen.family_id.hex(), max(seen.ordinal, 1), first, seen.first_seen_ms)


def _runs(arrivals: Sequence[Arrival]) -> Iterator[list[Arrival]]:
    """Yield arrivals in runs without two of one document.

    A state that is superseded within its batch has to be alive to those between both, as it is in smaller batches.
    """
    run: list[Arrival] = []
    documents: set[str] = set()
    for arrival in arrivals:
        if arrival.document_key in documents:
            yield run
            run, documents = [], set()
        run.append(arrival)
        documents.add(arrival.document_key)
    if run:
        yield run


def _is_state(number: int, answer: Registered) -> bool:
    """Return whether a record stored a state, now or at an earlier delivery."""
    return answer.status in (Status.NEW, Status.KNOWN) or (
        answer.status is Status.UNCHANGED and answer.number == number
    )


def _case(arriving: Arriving, number: int, answer: Registered) -> Case:
    named, words = pack_keys(arriving.keys)
    return Case(arriving, number, answer, named, words, len(arriving.keys.anchors))


def pack_keys(keys: Keys) -> tuple[bytes, bytes]:
    """Return the packed digest and lineage keys, and the packed band and anchor keys."""
    lineage = b"" if keys.lineage is None else LINEAGE + keys.lineage
    named = (DIGEST + keys.digest if keys.digest else b"") + lineage
    return named, b"".join([*(BAND + key for key in keys.bands), *(ANCHOR + key for key in keys.anchors)])


def _pack_label(arrival: Arrival) -> bytes:
    """Return a label, its weight and its time, or nothing if it was taken back."""
    labelling = arrival.labelling
    if labelling is None or labelling.label is None:
        return b""
    return b"%s:%d:%d" % (labelling.label.encode(), labelling.weight, labelling.given_ms)
