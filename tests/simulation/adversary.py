"""The adversary: runs all calls of all lanes in any order, and lets everything go wrong that may."""

import pickle
from collections import Counter, defaultdict
from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.decision import Pair
from nearstream.streams.matching.protocol.lane import Lane
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import Cover
from nearstream.streams.store.part import Part
from nearstream.streams.store.registration import Registered, Status
from nearstream.streams.store.store import Call, Shape, Store
from tests.simulation.texts import PARTITIONS, Oracle, Record, Text, World, named

STEPS_MAX = 100_000
CRASHES_MAX = 12
TAIL_MAX = 12  # calls of a slot that a failover loses
LIMITS = IndexLimits(retention_seconds=0)
_READING = ("peek", "fetch")
_CONFIRMED = ("decide", "note", "join")


@dataclass(frozen=True)
class Plan:
    """What a schedule consists of."""

    documents: int = 0  # records, apart from those that the seed decides
    slots: int = 0  # Slots of the store. 0: the seed decides.
    tails: int = 0  # how many times a slot loses its newest writes
    wipes: bool = False  # what a slot loses is all that it holds
    flushes: int = 0  # how many times all slots lose everything, and the index is rebuilt
    # How many times all lanes end and all slots lose what was done since the last verdicts, as a store in a file does.
    kills: int = 0
    confirms: bool = False  # what is decided waits for a replica
    chain: bool = False  # copies are not transitive
    storm: bool = False  # all documents are copies of one text
    expires: bool = True  # states may expire, unless anything is lost
    impatient: bool = False  # nobody waits for anybody
    resigns: bool = False  # some documents are signed twice
    lane: type[Lane] = Lane  # the protocol
    part: type[Part] = Part  # the store
    judge: type[Oracle] = Oracle  # what knows the documents


class Told(NamedTuple):
    """A verdict that was sent."""

    founder: int
    ordinal: int
    pairs: tuple[Pair, ...]
    new_links: tuple[bool, ...]
    of: int  # the document of the best relation, 0 if it comes later
    is_redundant: bool


class Wait:
    """Calls under way."""

    def __init__(self, calls: Sequence[Call]) -> None:
        """Begin to wait."""
        self.calls = calls
        self.replies: list[Any] = [None] * len(calls)
        self.left = len(calls)

    def __await__(self) -> Generator["Wait", Any, Any]:
        """Wait."""
        return (yield self)


class Nap:
    """A moment."""

    def __await__(self) -> Generator["Nap", Any, Any]:
        """Wait."""
        return (yield self)


@dataclass(eq=False)
class Run:
    """A run of a lane over one batch.

    A zombie is a run that goes on although its partitions have been given to another.
    """

    name: int  # its own number
    batch: list[Record]  # the records
    calls_left: int  # Calls until it crashes. 0: it does not.
    is_zombie: bool  # it goes on instead of crashing
    confirms: bool = False  # what is decided waits for a replica
    has_failed: bool = False  # it has crashed
    # By slot and partition, the count of calls that the slot has acknowledged.
    acknowledged: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def partitions(self) -> set[int]:
        """The partitions of its records."""
        return {record.partition for record in self.batch}

    async def all(self, calls: Sequence[Call]) -> Sequence[Any]:
        """Carry calls, and wait for replicas as `RedisTransport` does."""
        replies: Sequence[Any] = await Wait(calls) if calls else ()
        written = {(call.slot, call.partition) for call in calls if call.name in _CONFIRMED and self.confirms}
        if written:
            await Wait([Call(slot, "wait", [None], partition) for slot, partition in sorted(written)])
        return replies


class Schedule:
    """One seed, played to its end."""

    def __init__(self, seed: int, plan: Plan) -> None:
        """Draw the documents."""
        self.draw = draw = Random(seed)
        self.plan, self.world = plan, World(plan.chain)
        self.counts: Counter[str] = Counter()
        self.shape = Shape(plan.slots or draw.randint(1, 4), PARTITIONS)
        self._empty()
        self.names = 0
        self.partitions = self._records(plan.documents or draw.randint(4, 10))
        self.records = {record.number: record for some in self.partitions for record in some}
        self.position = [0] * PARTITIONS  # what is committed
        self.runs: dict[int, Run] = {}
        self.ready: list[tuple[Coroutine[Any, Any, None], Run, Wait, int]] = []
        self.naps: list[tuple[Coroutine[Any, Any, None], Run]] = []
        self.verdicts: dict[int, list[object]] = defaultdict(list)
        self.saw: dict[int, set[int]] = defaultdict(set)
        self.expired: set[int] = set()
        self.tails_left, self.flushes_left, self.kills_left = plan.tails, plan.flushes, plan.kills
        self.log: list[str] = []
        docs = {number: record.doc for number, record in self.records.items()}
        orders = {number: record.order for number, record in self.records.items()}
        self.oracle = plan.judge(self.world, draw, docs, orders)

    def _empty(self) -> None:
        """Begin with empty slots."""
        self.parts = [self.plan.part(LIMITS) for _ in range(self.shape.slots)]
        self.calls: list[Counter[tuple[int, int]]] = [Counter() for _ in self.parts]  # by run and partition
        self.history: list[list[bytes]] = [[] for _ in self.parts]
        self._commit()

    def _commit(self) -> None:
        """Let all slots keep what was done, if the plan has kills."""
        self.kept = pickle.dumps((self.parts, self.calls)) if self.plan.kills else b""

    def _records(self, count: int) -> list[list[Record]]:
        draw, partitions = self.draw, [list[Record]() for _ in range(PARTITIONS)]
        used = draw.randint(1, PARTITIONS)
        clusters = draw.randint(3, 5) if self.plan.chain else draw.randint(1, 3)
        templates, docs = draw.randint(1, 2), list[tuple[str, int]]()
        for i in range(count):
            partition = draw.randrange(used)
            mine = [name for name, own in docs if own == partition]
            kind = draw.random()
            text: Text | None = Text(draw.randrange(clusters), draw.randrange(4), draw.randrange(templates))
            if self.plan.storm:
                text = Text(0, draw.choice((0, 0, 0, 1, 2, 3)), 0)
            observed = draw.randrange(100) if draw.random() < 0.2 else i + 100
            if mine and kind < 0.25:
                doc = draw.choice(mine)
                text = None if kind < 0.08 else text
            else:
                doc = f"d{i}"
                docs.append((doc, partition))
            some = partitions[partition]
            some.append(Record(partition, len(some), doc, text, observed))
            if self.plan.resigns and draw.random() < 0.3:
                again = draw.choice(some)
                if again.text is not None and again.again < 0:
                    some.append(again._replace(offset=len(some), again=again.offset))
        return partitions

    # Running.

    def run(self) -> list[str]:
        """Play the schedule and return what is broken."""
        for _ in range(STEPS_MAX):
            self._happen()
            if not self._go_on():
                return []
        return ["stuck"]

    def _happen(self) -> None:
        """Start lanes, lose tails and let states expire, now and then."""
        draw = self.draw
        for partition in range(PARTITIONS):
            if self._is_free(partition) and draw.random() < 0.3:
                self._start(partition)
        if self.tails_left and draw.random() < 0.02:
            self._lose_tail()
        if self.flushes_left and draw.random() < 0.01:
            self._flush()
        if self.kills_left and draw.random() < 0.02:
            self._kill()
        if self.plan.expires and not (self.plan.tails or self.plan.flushes) and draw.random() < 0.01:
            self._expire()

    def _go_on(self) -> bool:
        """Make one of the calls under way, or wake a lane. Return whether anything is left to do."""
        draw = self.draw
        if self.naps and (not self.ready or draw.random() < 0.2):
            coroutine, run = self.naps.pop(draw.randrange(len(self.naps)))
            self._step(coroutine, run, None)
        elif self.ready:
            at = draw.randrange(len(self.ready))
            self.ready[at], self.ready[-1] = self.ready[-1], self.ready[at]
            self._execute(*self.ready.pop())
        elif not self.runs and not any(map(self._is_free, range(PARTITIONS))):
            return self._mend()
        return True

    def _is_free(self, partition: int) -> bool:
        return partition not in self.runs and self.position[partition] < len(self.partitions[partition])

    def _start(self, first: int) -> None:
        draw = self.draw
        others = [p for p in range(PARTITIONS) if p != first and self._is_free(p) and draw.random() < 0.3]
        batch = [
            record
            for p in (first, *others)
            for record in self.partitions[p][self.position[p] : self.position[p] + draw.randint(1, 3)]
        ]
        dooms = draw.random() < 0.4 and self.counts["crashes"] < CRASHES_MAX
        self.names += 1
        run = Run(self.names, batch, draw.randint(1, 30) if dooms else 0, draw.random() < 0.3, self.plan.confirms)
        for partition in run.partitions:
            self.runs[partition] = run
        self._step(self._body(run), run, None)

    async def _body(self, run: Run) -> None:
        cases, read = await self._matched(run)
        for case in cases:
            self._sent(case, read)

    async def _matched(self, run: Run) -> tuple[list[Case], set[int]]:
        """Match a batch, and return the decided documents, and the states whose records were read."""
        store = Store(run, self.shape, LIMITS, confirms=self.plan.confirms)
        lane = self.plan.lane(store, self.oracle, self._patience, _no_pause)
        starts = [Cover(p, min(r.offset for r in run.batch if r.partition == p) - 1) for p in run.partitions]
        await run.all(
            [Call(slot, "require", [one], one.partition) for one in starts for slot in range(self.shape.slots)]
        )
        answers = await lane.register([record.message for record in run.batch])
        pairs = list(zip(run.batch, answers, strict=True))
        cases = [self._case(record, answer) for record, answer in pairs if _is_state(record, answer)]
        cases = list({case.number: case for case in cases}.values())
        known = await lane.match(cases, is_again=self.plan.tails + self.plan.flushes > 0)
        await store.cover([Cover(p, max(r.offset for r in run.batch if r.partition == p)) for p in run.partitions])
        for record, answer in pairs:
            if record.text is not None and answer.status is Status.UNCHANGED and answer.number != record.number:
                self.verdicts[record.number].append("unchanged")
        return cases, set(known.records)

    def _case(self, record: Record, answer: Registered) -> Case:
        text = record.text
        if text is None:
            raise TypeError("a state expected")
        return Case(record, answer.number, answer, named(text), self.world.words(text), 0)

    def _sent(self, case: Case, read: set[int]) -> None:
        if case.is_gone or case.decision is None:
            return
        joined, decision = case.joined, case.decision
        ordinal, new = (joined.ordinal, joined.new_links) if joined else (1, ())
        first = decision.pairs[0].number if decision.pairs else 0
        of = first if first and self.oracle.comes_before(first, case.number) else 0
        told = Told(decision.founder, ordinal, decision.pairs, new, of, decision.is_redundant)
        self.verdicts[case.number].append(told)
        self.saw[case.number] |= (set(case.shared) & read) - case.yields | {each.number for each in case.late}
        self.saw[case.number] |= {pair.number for pair in decision.pairs}
        self.oracle.guesses.add(decision.founder)

    async def _patience(self, waits: Sequence[tuple[int, bool]]) -> list[bool]:
        draw, is_impatient = self.draw, self.plan.impatient
        patient = [not is_impatient and turn < draw.randrange(8 if is_smaller else 3) for turn, is_smaller in waits]
        self.counts["out of patience"] += patient.count(False)
        if any(patient):
            await Nap()
        return patient

    def _step(self, coroutine: Coroutine[Any, Any, None], run: Run, value: object) -> None:
        if run.has_failed:
            coroutine.close()
            return
        try:
            wanted = coroutine.send(value)
        except StopIteration:
            if all(self.runs.get(partition) is run for partition in run.partitions):
                for record in run.batch:
                    self.position[record.partition] = max(self.position[record.partition], record.offset + 1)
            self._release(run)
            self._commit()
            return
        if isinstance(wanted, Nap):
            self.naps.append((coroutine, run))
        else:
            self.ready += [(coroutine, run, wanted, i) for i in range(len(wanted.calls))]

    def _execute(self, coroutine: Coroutine[Any, Any, None], run: Run, wait: Wait, i: int) -> None:
        if run.has_failed and self.draw.random() < 0.5:
            return  # a call that was under way when its worker died
        if run.calls_left:
            run.calls_left -= 1
            if not run.calls_left and not run.has_failed:
                self.counts["crashes"] += 1
                if run.is_zombie:
                    self.counts["zombies"] += 1
                    self._release(run)
                else:
                    if self.draw.random() < 0.5:
                        self._call(run, wait.calls[i])
                    self._fail(run)
                    return
        answered, reply = self._call(run, wait.calls[i])
        if run.has_failed or not answered:
            return
        wait.replies[i] = reply
        wait.left -= 1
        if not wait.left:
            self._step(coroutine, run, wait.replies)

    def _call(self, run: Run, call: Call) -> tuple[bool, Any]:
        """Make a call of a slot, and return whether it was made, and the reply."""
        part, slot = self.parts[call.slot], call.slot
        known = run.acknowledged.get((slot, call.partition), 0) if call.partition is not None else 0
        if self.calls[slot][run.name, call.partition] < known:
            return self._gap(run, slot, call.partition)
        if call.name == "wait":
            self.history[slot].clear()
            return True, [None]
        if call.name in _READING:
            return True, pickle.loads(pickle.dumps(part.call(call.name, call.items)))  # noqa: S301 - our own
        if call.name == "require" and self.plan.tails and self._is_behind(part, call.items[0]):
            return self._gap(run, slot, call.items[0].partition)
        return True, self._write(run, call)

    def _write(self, run: Run, call: Call) -> Any:  # noqa: ANN401 - each call has a reply of its own
        part, slot = self.parts[call.slot], call.slot
        if self.plan.tails:
            self.history[slot] = [*self.history[slot], pickle.dumps((part, self.calls[slot]))][-TAIL_MAX:]
        reply = [None] if call.name == "require" else part.call(call.name, call.items)
        if call.partition is not None:
            self.calls[slot][run.name, call.partition] += 1
            run.acknowledged[slot, call.partition] = self.calls[slot][run.name, call.partition]
        self.counts[call.name] += 1
        return reply

    @staticmethod
    def _is_behind(part: Part, cover: Cover) -> bool:
        return part.covers.get(cover.partition, -1) < cover.offset

    # What goes wrong.

    def _gap(self, run: Run, slot: int, partition: int) -> tuple[bool, None]:
        """Let a lane begin again where its slot has lost the newest writes."""
        self.counts["gaps"] += 1
        if self.runs.get(partition) is run:
            self.position[partition] = min(self.position[partition], self.parts[slot].covers.get(partition, -1) + 1)
        self._fail(run)
        return False, None

    def _mend(self) -> bool:
        """Let idle lanes ask all slots whether these know what was done. Return whether one has lost something."""
        if self.tails_left:
            self._lose_tail()
        found = False
        for partition in range(PARTITIONS) if self.plan.tails else ():
            for part in self.parts:
                covered = part.covers.get(partition, -1) + 1
                if covered < self.position[partition]:
                    found, self.position[partition] = True, covered
        return found

    def _flush(self) -> None:
        """Let all slots lose everything, and match again what was done, without verdicts.

        Compaction may have dropped records with a newer one of their document.
        """
        self.flushes_left -= 1
        self.counts["flushes"] += 1
        self._end_all()
        self._empty()
        left = [self._compacted(some[: self.position[at]]) for at, some in enumerate(self.partitions)]
        while any(left):
            some = self.draw.choice([records for records in left if records])
            self.names += 1
            run = Run(self.names, some[: self.draw.randint(1, 3)], 0, False)
            del some[: len(run.batch)]
            self._at_once(self._matched(run), run)

    def _end_all(self) -> None:
        for run in {run for _, run, *_ in (*self.ready, *self.naps)}:
            self._fail(run)
        self.ready, self.naps = [], []

    def _kill(self) -> None:
        """Let all slots lose what was done since the last verdicts were sent."""
        self.kills_left -= 1
        self.counts["kills"] += 1
        self._end_all()
        self.parts, self.calls = pickle.loads(self.kept)  # noqa: S301 - our own

    def _compacted(self, records: Sequence[Record]) -> list[Record]:
        newest = {one.doc: one for one in records if one.text is None or one.again < 0}
        return [one for one in records if one.order >= newest.get(one.doc, one).order or self.draw.random() < 0.5]

    def _at_once(self, coroutine: Coroutine[Any, Any, Any], run: Run) -> None:
        """Run a lane to its end with nothing between."""
        replies: Any = None
        while True:
            try:
                wanted = coroutine.send(replies)
            except StopIteration:
                return
            replies = [self._call(run, call)[1] for call in wanted.calls] if isinstance(wanted, Wait) else None

    def _lose_tail(self) -> None:
        self.tails_left -= 1
        slot = self.draw.randrange(len(self.parts))
        if self.plan.wipes:
            self.parts[slot], self.calls[slot], self.history[slot] = self.plan.part(LIMITS), Counter(), []
        elif self.history[slot]:
            at = self.draw.randrange(len(self.history[slot]))
            self.parts[slot], self.calls[slot] = pickle.loads(self.history[slot][at])  # noqa: S301 - our own
            self.counts["lost calls"] += len(self.history[slot]) - at
            self.history[slot] = self.history[slot][:at]

    def _expire(self) -> None:
        """Let a decided state that was acknowledged expire: its record now, its decision later."""
        done = [
            (part, number)
            for part in self.parts
            for number, state in part.history.states.items()
            if state.decision is not None and state.record is not None and self._is_acknowledged(number)
        ]
        if done and len(self.expired) < 2:
            part, number = self.draw.choice(done)
            part.history.drop_record(number)
            self._commit()
            self.expired.add(number)
            self.counts["expired"] += 1

    def _is_acknowledged(self, number: int) -> bool:
        record = self.records[number]
        return record.offset < self.position[record.partition]

    def _release(self, run: Run) -> None:
        for partition in run.partitions:
            if self.runs.get(partition) is run:
                del self.runs[partition]

    def _fail(self, run: Run) -> None:
        run.has_failed = True
        self._release(run)


async def _no_pause() -> None:
    """Continue at once."""


def _is_state(record: Record, answer: Registered) -> bool:
    """Return whether a record made a state that has to be decided."""
    return record.text is not None and (
        answer.status in (Status.NEW, Status.KNOWN)
        or (answer.status is Status.UNCHANGED and answer.number == record.number)
    )
