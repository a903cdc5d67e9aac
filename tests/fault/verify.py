"""The invariants of a run, each a function that returns a count of violations."""

import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from operator import itemgetter

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.schemas.verdicts.events import Event, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.relations.verdict import MANY_SIBLINGS
from tests.fault.corpus import MARK
from tests.fault.entry import STALL
from tests.fault.families import (
    circles,
    decode_verdict,
    doubled_ordinals,
    founderless_families,
    lost_texts,
    mixed_families,
    partition,
    place_of,
    split_families,
    unconnected,
    unsent,
)
from tests.fault.observer import Sample
from tests.fault.oracle import Expected
from tests.fault.reading import Read, Written, text
from tests.fault.texts import Place, places_of

SIDES = ("newer", "older")
LINES_A_MINUTE = 100
MEMORY_BYTES = 512 * 1024 * 1024
OPEN_FILES = 100
_INCOMPLETE = ("bucket_overflow", "candidates_capped")
_MINUTE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d")


def disagreements(read: Read, expected: Expected) -> dict[str, int]:
    """Return counts of violations, by name, of the invariants about results."""
    verdicts, events = last_values(read.verdicts).values(), last_values(read.events).values()
    in_families = partition(verdicts, events, expected)
    return {
        "unanswered": unanswered(read, expected),
        "missing": missing(read, expected),
        "surplus": surplus(read, expected),
        "differing values": differing(read, expected),
        "untrue events": untrue(read, expected),
        "unsent events": unsent(read.verdicts, read.events, expected),
        "split families": split_families(in_families, expected),
        "mixed families": mixed_families(in_families, expected),
        "doubled ordinals": doubled_ordinals(verdicts),
        "lost texts": lost_texts((record.value or b"" for _, record in read.verdicts), expected),
        "circles": circles(record.value or b"" for _, record in read.verdicts),
        "families without founder": founderless_families(verdicts, expected),
        "unconnected": unconnected(in_families, expected),
    }


def unanswered(read: Read, expected: Expected) -> int:
    """I1: Count records of `documents` without an outcome or with contradicting ones."""
    signed, refused = ({place for place, _ in told} for told in (read.signed, read.refused))
    wrong = 0
    for record in read.documents:
        place = record.partition, record.offset
        removed = (expected.removed.get(place, "").encode(), record.timestamp_ms) in read.removals
        wrong += sum((place in signed, place in refused, place in expected.empty, removed)) != 1
    return wrong


def missing(read: Read, expected: Expected) -> int:
    """I2: Count verdicts and retractions of the single process that are missing on the topics.

    There may be no verdict about a document that was removed in the batch of its arrival.
    """
    missed = expected.verdicts.keys() - _ids(read.verdicts) - expected.withdrawn
    return len(missed) + len(expected.retractions.keys() - _ids(read.retractions))


def surplus(read: Read, expected: Expected) -> int:
    """I2: Count verdicts and retractions that the single process does not send."""
    unknown = _ids(read.verdicts) - expected.verdicts.keys()
    return len(unknown) + len(_ids(read.retractions) - expected.retractions.keys())


def differing(read: Read, expected: Expected) -> int:
    """I3: Count ids with more than one value.

    A verdict may leave out what it says of a document that was removed, and then say another novelty, which rests on
    all documents of its events. Of an event, what depends on the buckets of the moment may differ. A retraction must
    have the value of the single process.
    """
    removed = set(expected.removed.values())
    beside_removed = _beside_removed(read, removed)
    values: dict[str, set[str]] = defaultdict(set)
    for verdict_id, record in read.verdicts:
        values[verdict_id].add(_without_removed(record.value or b"", removed, beside_removed))
    for event_id, record in read.events:
        values[event_id].add(_of_pair(record.value or b""))
    retractions = [(event_id, record.value or b"") for event_id, record in read.retractions]
    for event_id, value in (*retractions, *expected.retractions.items()):
        values[event_id].add(value.decode())
    return sum(len(each) > 1 for each in values.values())


def untrue(read: Read, expected: Expected) -> int:
    """I8: Count events that a process which knows only their two documents does not send.

    Events count too that name a family which none of their documents belongs to.
    """
    family_of = {place_of(each): each.family.id for each in map(decode_verdict, last_values(read.verdicts).values())}
    wrong = 0
    for event_id, record in dict(read.events).items():
        value, event = record.value or b"", json.loads(record.value or b"")
        known = {family_of.get(place, event["family"]) for place in places_of(event)}
        is_said = event_id in expected.true and _of_pair(value) == _of_pair(expected.true[event_id])
        wrong += not is_said or event["family"] not in known
    return wrong


def last_values(told: Iterable[tuple[str, ConsumerRecord]]) -> dict[str, bytes]:
    """Return the value of the last record of each id, which is what consumers keep."""
    return {name: record.value or b"" for name, record in told}


def _ids(told: Iterable[tuple[str, ConsumerRecord]]) -> set[str]:
    return {name for name, _ in told}


def restated(read: Read) -> int:
    """Count signatures, verdicts and relation events that were sent more than once."""
    signed = [place for place, _ in read.signed]
    told = [name for name, _ in (*read.verdicts, *read.events)]
    return len(signed) - len(set(signed)) + len(told) - len(set(told))


def wrong_letters(read: Read, expected: Expected) -> int:
    """Count dead letters whose reason, value, key or foreign headers are wrong.

    They are compared with the record of the document that was refused.
    """
    sent = {(record.partition, record.offset): record for record in read.documents}
    wrong = 0
    for place, letter in read.refused:
        record = sent[place]
        same = letter.key == record.key and letter.value == (record.value or b"")
        kept = letter.headers[: len(record.headers)] == record.headers
        wrong += not (same and kept and text(letter, "nearstream-dead-reason") == expected.refused.get(place))
    return wrong


def fallen_commits(samples: Sequence[Sample]) -> int:
    """I4: Count committed offsets that fell between two samples or exceeded the end offset."""
    falls = sum(
        after.committed[place] < offset
        for before, after in pairwise(samples)
        for place, offset in before.committed.items()
    )
    return falls + sum(offset > each.ends[place] for each in samples for place, offset in each.committed.items())


def hasty_commits(samples: Sequence[Sample], read: Read, expected: Expected) -> int:
    """I4: Count outcomes that were not yet on their topic when their causes were acknowledged."""
    known = samples[-1].committed if samples else {}
    course = {place: [sample.committed.get(place, -1) for sample in samples] for place in known}

    def late(causes: Iterable[Written], outcome: Written | None) -> bool:
        """Return whether the outcome was missing at the first sample with all causes acknowledged."""
        seen = max((bisect_right(course[topic, part], offset) for topic, part, offset in causes), default=len(samples))
        if seen == len(samples):
            return False
        return outcome is None or samples[seen].ends.get(outcome[:2], 0) <= outcome[2]

    signed, told = read.first(read.signed), read.first((*read.verdicts, *read.events))
    answered = {**signed, **read.first(read.refused)}
    hasty = 0
    for record in read.documents:
        place = record.partition, record.offset
        if place not in expected.empty and place not in expected.removed:
            hasty += bool(samples) and late([(DOCUMENTS.name, *place)], answered.get(place))
    for verdict_id, value in expected.verdicts.items():
        place = place_of(decode_verdict(value))
        if place in signed and verdict_id not in expected.withdrawn:
            hasty += late([signed[place]], told.get(verdict_id))
    for event_id, value in last_values(read.events).items():
        causes = [signed[place] for place in places_of(json.loads(value)) if place in signed]
        hasty += len(causes) == 2 and late(causes, told[event_id])
    return hasty


def named_after_removal(read: Read) -> int:
    """I5: Count verdicts and events about documents sent after a retraction that name what it retracts.

    What was under way when the document was removed may still name it.
    """
    retracted: dict[str, tuple[int, Retraction]] = {}
    for event, record in _decoded(read.retractions):
        if isinstance(event, Retraction):
            key = document_key(event.collection, event.document_id)
            retracted[key] = max((record.timestamp_ms, event), retracted.get(key, (0, event)), key=itemgetter(0))
    sent_ms = {(record.partition, record.offset): record.timestamp_ms for record in read.documents}
    named = 0
    for event, _ in _decoded((*read.verdicts, *read.events)):
        about, refs = _named(event)
        for ref in refs:
            retracted_ms, retraction = retracted.get(document_key(event.collection, ref.id), (0, None))
            late = retraction is not None and max(sent_ms[each] for each in about) > retracted_ms
            named += late and _is_before(ref, retraction)
    return named


def _decoded(told: Iterable[tuple[str, ConsumerRecord]]) -> Iterator[tuple[Event, ConsumerRecord]]:
    return ((decode_event(record.value or b""), record) for _, record in told)


def _is_before(ref: DocumentRef, retraction: Retraction) -> bool:
    if ref.partition == retraction.partition and ref.offset is not None and isinstance(retraction.offset, int):
        is_of_a_new_topic = ref.sent_at is not None and ref.sent_at > retraction.removed_at + timedelta(seconds=1)
        return ref.offset < retraction.offset and not is_of_a_new_topic
    return (ref.sent_at or ref.observed_at) <= retraction.removed_at


def _named(event: Event) -> tuple[list[Place], list[DocumentRef]]:
    """Return the places of the documents that an event is about, and all documents that it names."""
    if isinstance(event, Retraction):
        return [], []
    if isinstance(event, DocumentVerdict):
        return [place_of(event)], [ref for ref in (event.of, event.family.founder) if ref is not None]
    pair = [event.newer, event.older]
    return [(ref.partition or 0, ref.offset or 0) for ref in pair], pair


def unbounded(samples: Sequence[Sample]) -> int:
    """I6: Count samples of workers with too much memory or too many open files."""
    memory = sum(size > MEMORY_BYTES for sample in samples for size in sample.memory.values())
    return memory + sum(count > OPEN_FILES for sample in samples for count in sample.files.values())


def stalls(logs: Iterable[str]) -> int:
    """I6: Count steps in which an event loop was busy for over 200 ms."""
    return sum(log.count(STALL) for log in logs)


def unclean_lines(logs: Iterable[str]) -> int:
    """I7: Count tracebacks, texts of documents and lines above 100 per minute in logs."""
    unclean = 0
    for log in logs:
        unclean += log.count(MARK) + len(re.findall(r"^Traceback ", log, re.MULTILINE))
        minutes = Counter(found[0] for line in log.splitlines() if (found := _MINUTE.match(line)))
        unclean += sum(max(0, count - LINES_A_MINUTE) for count in minutes.values())
    return unclean


def _beside_removed(read: Read, removed: set[str]) -> set[tuple[str, str]]:
    """Return the states, by document key and version, that have an event with a document that was removed."""
    found = set()
    for _, record in read.events:
        event = json.loads(record.value or b"")
        pair = [(document_key(event["collection"], event[side]["id"]), event[side]["version"]) for side in SIDES]
        found.update(one for one, other in (pair, pair[::-1]) if other[0] in removed)
    return found


def _without_removed(value: bytes, removed: set[str], beside_removed: set[tuple[str, str]]) -> str:
    """Return a verdict as JSON without what it says of documents that were removed at some time."""
    verdict = json.loads(value)
    own = document_key(verdict["collection"], verdict["id"]), verdict["version"]
    if own in beside_removed or _is_gone(verdict["of"], verdict, removed):
        for name in ("added", "novel", "novel_spans", "removed_spans", "sources", "common", "redundant"):
            verdict.pop(name, None)
    if _is_gone(verdict["family"]["founder"], verdict, removed):
        verdict["family"]["founder"] = None
    if _is_gone(verdict["of"], verdict, removed):
        verdict["of"] = None
        for name in ("resemblance", "distance", "inner", "low_confidence", "degraded"):
            verdict.pop(name, None)
    return json.dumps(verdict, sort_keys=True)


def _is_gone(named: dict[str, str] | None, verdict: dict[str, str], removed: set[str]) -> bool:
    return named is None or document_key(verdict["collection"], named["id"]) in removed


def _of_pair(value: bytes) -> str:
    """Return an event as JSON without the fields that depend on who arrived when."""
    event = json.loads(value)
    event.pop("family", None)
    event["degraded"] = [reason for reason in event["degraded"] if reason not in _INCOMPLETE]
    event["low_confidence"] = [reason for reason in event["low_confidence"] if reason != MANY_SIBLINGS]
    for name in ("bands", "anchors"):  # a copy of a representative leaves out the keys that they share
        del event["evidence"]["keys"][name]
    return json.dumps(event, sort_keys=True)
