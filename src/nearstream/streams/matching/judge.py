"""What knows the documents of a lane: how they compare, and what is decided about them."""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.ingest.sites import site_hash
from nearstream.streams.matching.arriving import Arriving
from nearstream.streams.matching.counterpart import Candidate, Compared, compare_with
from nearstream.streams.matching.family import own_family_id
from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.choosing import covering, representative_of
from nearstream.streams.matching.protocol.decision import PAIRS_CAP, Decision, KeyMatch, Pair
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.matching.protocol.tally import COPY_PERCENT, Shared
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.signing.scheme import Keys, Scheme
from nearstream.streams.store.messages import Join
from nearstream.streams.store.record import Comparable, Recorded, shortened, unpack_record

Anchors = Sequence[bytes]
HINTS_CAP = 200_000  # anchors of which the lane remembers who represents the family that has them
UNPACKED_CAP = 4_096  # unpacked records that the lane remembers


@dataclass
class MatchCounts:
    """What a matcher has done since its start."""

    # Number of earlier documents: all as `looked_up`, and each as `verified` (related) or `rejected`.
    candidates: Counter[str] = field(default_factory=Counter)
    # Number of relations found but not asked for, by relation.
    suppressed: Counter[str] = field(default_factory=Counter)
    full_buckets: int = 0  # number of buckets of registered documents that were full
    cut: int = 0  # number of documents for which the limit of candidates left some out
    overtaken: int = 0  # number of documents that arrived after their removal


class Documents:
    """Compares documents by their signatures. It is the `Judge` of a lane.

    Attributes:
        counts: What was done since the start, for metrics. No decision depends on it.
    """

    def __init__(self, scheme: Scheme, thresholds: Thresholds, relations: frozenset[str]) -> None:
        self.counts = MatchCounts()
        self._scheme, self._thresholds, self._relations = scheme, thresholds, relations
        self._hints = Hints(HINTS_CAP)
        self._records: OrderedDict[int, tuple[bytes, Recorded]] = OrderedDict()

    def compare(self, case: Case, numbers: Sequence[int], known: Known) -> list[Compared]:
        """Compare a document with states whose records are known, and return the related ones."""
        arriving: Arriving = case.document
        candidates = self.candidates(case, numbers, known)
        lacks = (case.full_buckets > 0, case.cut)
        compared = compare_with(arriving, candidates, lacks) if candidates else ()
        related = [each for each in compared if self._is_related(each)]
        counted = (
            ("looked_up", len(candidates)),
            ("verified", len(related)),
            ("rejected", len(candidates) - len(related)),
        )
        for name, count in counted:
            if count:
                self.counts.candidates[name] += count
        return related

    def candidates(self, case: Case, numbers: Sequence[int], known: Known) -> list[Candidate]:
        """Return what a document shares with states whose records are known.

        Those of other collections are left out: a store may shorten keys, so that by chance two collections share a
        bucket.
        """
        arriving: Arriving = case.document
        stored = {pair.number: pair.match for pair in case.decision.pairs} if case.decision else {}
        found = []
        for number in numbers:
            earlier = self.record_of(number, known)
            if earlier.collection == arriving.signature.collection:
                match = stored.get(number) or self._match(case, earlier, number)
                represents = representative_of(known.family_of(number), known.families) == number
                before = _place(earlier, number) < _place(arriving.signature, case.number)
                found.append(Candidate(number, earlier, match, known.views[number].anchors, represents, before))
        return found

    def _match(self, case: Case, earlier: Recorded, number: int) -> KeyMatch:
        shared, is_former = case.shared.get(number) or Shared(), number == case.registered.former
        bands, anchors = shared.bands, shared.anchors
        by_digest = shared.by_digest or earlier.digest == case.document.signature.digest
        if by_digest and not (bands or anchors):  # whose buckets one of both left out
            keys: Keys = case.document.keys
            bands, anchors = len(keys.bands), len(keys.anchors)
        by_lineage = shared.by_lineage or is_former
        return KeyMatch(bands, anchors, by_digest, by_lineage, shared.in_full_bucket, shared.shares_rare)

    def record_of(self, number: int, known: Known) -> Recorded:
        """Return the record of a state, unpacked as far as a comparison needs it."""
        packed = known.records[number]
        held = self._records.get(number)
        if held is None or held[0] is not packed:
            order = known.views[number].order
            held = packed, unpack_record(packed, self._scheme.name, order.version, order.observed_ms)
            self._records[number] = held
            while len(self._records) > UNPACKED_CAP:
                self._records.popitem(last=False)
        return held[1]

    def _is_related(self, compared: Compared) -> bool:
        """Return whether two documents are related, and share more than boilerplate.

        Relations that are found but not sent are counted.
        """
        relation = compared.relation
        if relation == "unrelated":
            return False
        if compared.is_common_text or relation not in self._relations:
            self.counts.suppressed[relation] += 1
        return not compared.is_boilerplate

    def decision(self, case: Case, founder: int, known: Known) -> Decision:
        """Return the family of a document and its related documents.

        Of each other family, the best member gets an event. The former state always gets one. The best of all
        related documents is stored even if its event is not sent.
        """
        found = ranked(case)
        has_all = covering(found, known.views)
        found.sort(key=lambda each: each is not has_all)
        related = [each for each in found if each.number not in case.yields]
        former = former_state(found, case.registered.former)
        sent = set(self._sent(related, former, founder, known))
        pairs = [
            self._pair(each, founder, known, is_sent=each.number in sent, is_always=each is former)
            for place, each in enumerate(related)
            if each.number in sent or not place
        ]
        return Decision(founder, tuple(pairs[:PAIRS_CAP]), case.full_buckets > 0, case.cut, has_all is not None)

    def _sent(self, related: Sequence[Compared], former: Compared | None, founder: int, known: Known) -> Iterator[int]:
        told = set[int]()
        for each in sorted(related, key=lambda each: each is not former):
            if each.relation not in self._relations or each.is_common_text:
                continue
            family = _family_of(each, founder, known)
            if each is not former and family in told:
                continue
            told.add(family)
            yield each.number

    def _pair(self, each: Compared, founder: int, known: Known, *, is_sent: bool, is_always: bool) -> Pair:
        family = _family_of(each, founder, known)
        is_link = is_sent and not is_always and family != founder
        return Pair(each.number, family, each.relation, is_sent, is_link, each.candidate.match)

    def shortened(self, case: Case, founder: bytes) -> bytes:
        """Return the record of a copy as a patch of that of the founder of its family, or nothing."""
        return shortened(case.document.record, founder)

    def join(self, case: Case, founder: int, known: Known) -> Join:
        """Return the message with which a document joins a family."""
        own: Signature = case.document.signature
        keeps = known.founder(case.registered.former) == founder and not case.is_late
        # If the founder was removed before a second member joined, the family gets the id of that member.
        first = self.record_of(founder, known) if known.has_text(founder) else own
        is_founder = founder == case.number
        named = own if is_founder else first
        return Join(
            founder,
            case.number,
            case.is_dead or case.is_late,
            not case.left and not case.is_late,
            b"".join([pair.link for pair in case.decision.links]) if case.decision else b"",
            case.registered.former if keeps else 0,
            bytes.fromhex(own_family_id(named, self._scheme.name)),
            named.observed_at_ms,
            own.sender,
            own.recipients,
            site=site_hash(own.url),
            first_site=site_hash(named.url),
            keeps=bool(case.patch),
        )

    def hint(self, case: Case) -> int:
        """Return the representative of the family that most anchors of a document belong to, or 0.

        It may be a document of the same batch, which will found a family or join one.
        """
        anchors = case.document.keys.anchors
        known = self._hints.numbers(anchors)
        number, count = Counter(known).most_common(1)[0] if known else (0, 0)
        is_usable = number not in (0, case.number, case.registered.former)  # the former state is dead by now
        if is_usable and 100 * count >= COPY_PERCENT * len(anchors):
            return number
        self.learn(case, case.number)  # a copy may follow in its batch
        return 0

    def learn(self, case: Case, representative: int) -> None:
        """Remember who represents the family that has the anchors of a document."""
        if representative:
            self._hints.learn(case.document.keys.anchors, representative)


def _place(document: Comparable, number: int) -> tuple[int, int]:
    """Return the sort key of states by the time at which their documents were sent.

    No loss of Redis and no repetition changes this order. Times are in units of 1,024 ms, because documents that were
    sent at about one time are matched in the order of their numbers.
    """
    return document.sent_at_ms >> 10, number


def ranked(case: Case) -> list[Compared]:
    """Return the related documents, the best first. Equal states of the document itself are left out."""
    own: Signature = case.document.signature
    others = [
        each
        for each in case.compared.values()
        if isinstance(each, Compared)
        and (each.candidate.earlier.id, each.candidate.earlier.version) != (own.id, own.version)
    ]
    return sorted(others, key=lambda each: each.rank)


def former_state(related: Sequence[Compared], former: int) -> Compared | None:
    """Return the former state of a document, else the last one of its lineage, or None."""
    own = [each for each in related if each.number == former]
    if own:
        return own[0]
    lineage = [each for each in related if each.same_lineage]
    return max(lineage, key=lambda each: each.candidate.earlier.order, default=None)


def _family_of(each: Compared, founder: int, known: Known) -> int:
    """Return the family of a related document for one that joins a founder's.

    Equal texts are one family, so one that is undecided will join it too.
    """
    view = known.views.get(each.number)
    is_undecided = view is None or view.decision is None
    return founder if each.is_exact and is_undecided else known.family_of(each.number)


class Hints:
    """Numbers of documents by anchor, of which the last ones are remembered.

    Anchors are forgotten by the half, because to forget one for each that is added takes as long as to match by them.
    """

    def __init__(self, cap: int) -> None:
        self._half = cap // 2
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}

    def learn(self, anchors: Anchors, number: int) -> None:
        """Remember that these anchors lead to the document with this number."""
        self._young.update(zip(anchors, repeat(number)))
        if len(self._young) > self._half:
            self._old, self._young = dict(list(self._young.items())[-self._half :]), {}

    def numbers(self, anchors: Anchors) -> list[int]:
        """Return where anchors lead, for each that is known."""
        return list(filter(None, map(self._young.get, anchors, map(self._old.get, anchors))))
