"""The laws of matching, asked of a schedule that has ended."""

from collections import Counter, defaultdict

from nearstream.streams.matching.protocol.decision import founder_of
from nearstream.streams.store.buckets import split
from nearstream.streams.store.limits import BAND_CAP
from nearstream.streams.store.messages import KEY_BYTES
from tests.simulation.adversary import Schedule, Told
from tests.simulation.texts import Record, Text, named


def broken_laws(schedule: Schedule) -> set[str]:
    """Return the names of the laws that a schedule has broken."""
    laws = Laws(schedule)
    return {
        law.__name__.strip("_").replace("_", " ")
        for law in (
            laws.registry,
            laws.one_verdict,
            laws.each_has_a_verdict,
            laws.recorded,
            laws.findable,
            laws.pairs_are_seen,
            laws.one_family,
            laws.counts,
            laws.ordinals,
            laws.room,
            laws.one_is_kept,
            laws.no_circles,
        )
        if not law()
    }


class Laws:
    """The truth about a schedule, beside what the store holds. Each law returns whether it holds."""

    def __init__(self, schedule: Schedule) -> None:
        """Collect what the store holds."""
        self.schedule, self.world = schedule, schedule.world
        self.records = schedule.records
        self.states = {number: state for part in schedule.parts for number, state in part.history.states.items()}
        self.texts: dict[int, Text] = {
            n: record.text
            for n, record in self.records.items()
            if record.text and (record.again < 0 or n in self.states)
        }
        self.families = {founder: family for part in schedule.parts for founder, family in part.families.items()}
        self.founders = {n: founder_of(s.decision) for n, s in self.states.items() if s.decision is not None}
        self.alive = {number for part in schedule.parts for number in part.history.current.values()}

    def registry(self) -> bool:
        """The current state of each document has the text that it should have."""
        truth: dict[str, Record] = {}
        for some in self.schedule.partitions:
            for record in some:
                if "unchanged" in self.schedule.verdicts[record.number] or record.again >= 0:
                    continue  # it made no state
                if record.text is None:
                    truth.pop(record.doc, None)
                elif record.doc not in truth or truth[record.doc].order <= record.order:
                    truth[record.doc] = record
        expired = {self.records[number].doc for number in self.schedule.expired}
        held = {self.records[number].doc: self.texts[number] for number in self.alive}
        return all(
            held.get(doc) == (truth[doc].text if doc in truth else None)
            for doc in truth.keys() | held.keys()
            if doc not in expired
        )

    def one_verdict(self) -> bool:
        """A verdict that is sent again is equal."""
        return all(len(set(verdicts)) == 1 for verdicts in self.schedule.verdicts.values() if verdicts)

    def each_has_a_verdict(self) -> bool:
        """Each document that was not removed has a verdict."""
        removed = {record.doc: n for n, record in self.records.items() if record.text is None}
        return all(
            self.schedule.verdicts.get(number) or removed.get(self.records[number].doc, 0) > number
            for number in self.texts
        )

    def recorded(self) -> bool:
        """Each living state has a decision."""
        return all(number in self.founders and self.states[number].record for number in self.alive)

    def findable(self) -> bool:
        """Each living state stands in each of its buckets, or one that leads to who represents its family does."""
        for number in self.alive & self.founders.keys():
            family = self.founders[number]
            keys = named(self.texts[number]) + self.world.words(self.texts[number])
            for at in range(0, len(keys), KEY_BYTES):
                if not self._is_found(number, family, keys[at : at + KEY_BYTES]):
                    return False
        return True

    def _is_found(self, number: int, family: int, key: bytes) -> bool:
        bucket = self.schedule.parts[self.schedule.shape.slot_of(key)].buckets.numbers(key)
        if number in bucket:
            return True
        leads = any(self.founders.get(each) == family for each in bucket)
        facts = self.families.get(family)
        representative = facts.facts.representative if facts else family
        if leads and representative in self.alive:
            return True
        # A representative that has expired hands on to a living member, as soon as somebody meets it.
        members = facts.members.living if facts else set()
        return leads and representative in self.schedule.expired and bool(members & self.alive)

    def pairs_are_seen(self) -> bool:
        """Of two related living states one has seen the other, or their families have."""
        seen: dict[int, set[int]] = defaultdict(set)
        for number, others in self.schedule.saw.items():
            for other in others:
                a, b = self.founders.get(number), self.founders.get(other)
                if a and b:
                    seen[a].add(b)
                    seen[b].add(a)
        saw = self.schedule.saw
        living = sorted(self.alive & self.founders.keys())
        return all(
            self.founders[a] == self.founders[b]
            or self.founders[b] in seen[self.founders[a]]
            or a in saw[b]
            or b in saw[a]
            for a in living
            for b in living
            if a < b and self.world.is_related(self.texts[a], self.texts[b])
        )

    def one_family(self) -> bool:
        """Living copies are one family, and one more for each that died meanwhile."""
        clusters: dict[object, set[int]] = defaultdict(set)
        deaths: Counter[object] = Counter()
        dead = [number for number in self.texts if number not in self.alive]
        for number in self.alive & self.founders.keys():
            text = self.texts[number]
            clusters[text if self.world.chain else text.cluster].add(self.founders[number])
        for number in dead:
            for cluster in clusters:
                text = self.texts[number]
                is_copy = self.world.is_copy(text, cluster) if isinstance(cluster, Text) else text.cluster == cluster
                deaths[cluster] += is_copy
        return all(len(families) <= 1 + deaths[cluster] for cluster, families in clusters.items())

    def counts(self) -> bool:
        """The members of a family are those that were decided for it."""
        members: dict[int, set[int]] = defaultdict(set)
        for number, founder in self.founders.items():
            members[founder].add(number)
        for founder, family in self.families.items():
            counted = set(family.members.ordinals)
            if any(self.founders.get(number, founder) != founder for number in counted - {founder}):
                return False
            if (members[founder] & self.alive) - counted or (members[founder] & self.alive) & family.members.left:
                return False
            dead = counted - self.alive - self.schedule.expired
            if any(number in self.founders for number in dead - family.members.left):
                return False  # who has died has left
        return True

    def room(self) -> bool:
        """A storm of copies fills no bucket of words, so that others find a place there."""
        keys = {key for number in self.alive for key in split(self.world.words(self.texts[number]))}
        buckets = [part.buckets.numbers(key) for part in self.schedule.parts for key in keys]
        return not self.schedule.plan.storm or all(len(some) < BAND_CAP for some in buckets)

    def ordinals(self) -> bool:
        """Two documents of one family have different ordinals."""
        given: dict[tuple[int, int], set[str]] = defaultdict(set)
        for number, verdicts in self.schedule.verdicts.items():
            if verdicts and isinstance(verdicts[-1], Told) and number in self.founders:
                given[verdicts[-1].founder, verdicts[-1].ordinal].add(self.records[number].doc)
        return all(len(docs) == 1 for docs in given.values())

    def one_is_kept(self) -> bool:
        """Of all documents of a text, one was never redundant, unless some have died.

        By the last verdicts, whoever follows `of` from one that may be dropped comes to an equal text that may not.
        """
        told = {n: [each for each in some if isinstance(each, Told)] for n, some in self.schedule.verdicts.items()}
        texts = {text for number, text in self.texts.items() if told.get(number)}
        for text in texts:
            mine = [number for number, each in self.texts.items() if each == text]
            dropped = [any(each.is_redundant for each in told.get(number, ())) for number in mine]
            if all(dropped) and self.alive.issuperset(mine):
                return False
        last = {number: some[-1] for number, some in told.items() if some}
        for number in last:
            at, left = number, len(last)
            while at in last and last[at].is_redundant and left:
                at, left = last[at].of, left - 1
            if not left or self.records[at].text != self.records[number].text:
                return False
        return True

    def no_circles(self) -> bool:
        """Whoever follows `of`, by any of the verdicts that were ever sent, comes to an end."""
        ahead = {
            number: {each.of for each in some if isinstance(each, Told) and each.of}
            for number, some in self.schedule.verdicts.items()
        }
        while ends := [number for number, others in ahead.items() if not others & ahead.keys()]:
            for number in ends:
                del ahead[number]
        return not ahead
