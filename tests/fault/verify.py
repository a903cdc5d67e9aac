"""The invariants, each a function of what was read; all return counts, and 0 is well."""

import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise

from schemas.codec import decode_event
from schemas.document import document_key
from schemas.events import Retraction
from schemas.record import Record
from schemas.topics import DOCUMENTS
from streams.weakness import MANY_SIBLINGS
from tests.fault.corpus import MARK
from tests.fault.entry import STALL
from tests.fault.observer import Sample
from tests.fault.oracle import Expected, Place
from tests.fault.reading import Read, Written, text

LINES_A_MINUTE = 100
MEMORY_BYTES = 512 * 1024 * 1024
OPEN_FILES = 100
_MINUTE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d")
_TRACE = re.compile(r"^Traceback .*\n(?:\s.*\n)*(.*)", re.MULTILINE)


def unanswered(read: Read, expected: Expected) -> int:
    """I1: records of `documents` without an outcome, or with two that exclude each other."""
    signed, refused = ({place for place, _ in told} for told in (read.signed, read.refused))
    wrong = 0
    for record in read.documents:
        place = record.partition, record.offset
        removed = (expected.removed.get(place, "").encode(), record.timestamp_ms) in read.removals
        wrong += sum((place in signed, place in refused, place in expected.empty, removed)) != 1
    return wrong


def missing(read: Read, expected: Expected) -> int:
    """I2: events that the oracle has and the topics have not."""
    return len(expected.events.keys() - {event_id for event_id, _ in read.told})


def surplus(read: Read, expected: Expected) -> int:
    """I2: events that the topics have and the oracle has not."""
    return len({event_id for event_id, _ in read.told} - expected.events.keys())


def differing(read: Read, expected: Expected) -> int:
    """I3: event ids of more than one value, the oracle's among them, but for `degraded` and `many_siblings`.

    Where a record was sent twice, an event may name either.
    """
    originals: dict[Hashable, Place] = {}
    original_of = {
        (record.partition, record.offset): originals.setdefault(
            (record.key, record.value, record.timestamp_ms), (record.partition, record.offset)
        )
        for record in read.documents
    }
    told = [(event_id, record.value or b"") for event_id, record in read.told]
    values: dict[str, set[str]] = defaultdict(set)
    for event_id, value in (*told, *((key, expected.events[key]) for key, _ in told if key in expected.events)):
        values[event_id].add(_lasting(value, original_of))
    return sum(len(each) > 1 for each in values.values())


def restated(read: Read) -> int:
    """Signatures and relation events that had been stated before."""
    signed = [place for place, _ in read.signed]
    told = [event_id for event_id, record in read.told if not _is_retraction(record)]
    return len(signed) - len(set(signed)) + len(told) - len(set(told))


def wrong_letters(read: Read, expected: Expected) -> int:
    """Dead letters of documents whose reason, value, key or foreign headers are not those of their record."""
    sent = {(record.partition, record.offset): record for record in read.documents}
    wrong = 0
    for place, letter in read.refused:
        record = sent[place]
        same = letter.key == record.key and letter.value == (record.value or b"")
        kept = letter.headers[: len(record.headers)] == record.headers
        wrong += not (same and kept and text(letter, "nearstream-dead-reason") == expected.refused.get(place))
    return wrong


def fallen_commits(samples: Sequence[Sample]) -> int:
    """I4: committed offsets that fell between two looks, or stood beyond the end."""
    falls = sum(
        after.committed[place] < offset
        for before, after in pairwise(samples)
        for place, offset in before.committed.items()
    )
    return falls + sum(offset > each.ends[place] for each in samples for place, offset in each.committed.items())


def hasty_commits(samples: Sequence[Sample], read: Read, expected: Expected) -> int:
    """I4: outcomes that were not on their topic yet when what they follow from was acknowledged."""
    known = samples[-1].committed if samples else {}
    course = {place: [sample.committed.get(place, -1) for sample in samples] for place in known}

    def late(causes: Iterable[Written], outcome: Written | None) -> bool:
        """At the first look that saw all causes acknowledged."""
        seen = max((bisect_right(course[topic, part], offset) for topic, part, offset in causes), default=len(samples))
        if seen == len(samples):
            return False
        return outcome is None or samples[seen].ends.get(outcome[:2], 0) <= outcome[2]

    signed, told = read.first(read.signed), read.first(read.told)
    answered = {**signed, **read.first(read.refused)}
    hasty = 0
    for record in read.documents:
        place = record.partition, record.offset
        if place not in expected.empty and place not in expected.removed:
            hasty += bool(samples) and late([(DOCUMENTS.name, *place)], answered.get(place))
    for event_id, value in expected.events.items():
        causes = [signed[place] for place in _origins(value) if place in signed]
        hasty += len(causes) == 2 and late(causes, told.get(event_id))
    return hasty


def named_after_removal(read: Read) -> int:
    """I5: events that name a document after its retraction, in a state from before."""
    retracted: dict[str, tuple[int, float]] = {}
    for _, record in read.told:
        event = decode_event(record.value or b"")
        if isinstance(event, Retraction):
            key = document_key(event.collection, event.document_id)
            sent = max(record.timestamp_ms, retracted.get(key, (0, 0.0))[0])
            retracted[key] = sent, event.removed_at.timestamp()
    named = 0
    for _, record in read.told:
        event = decode_event(record.value or b"")
        if isinstance(event, Retraction):
            continue
        for state in (event.newer, event.older):
            sent, removed = retracted.get(document_key(event.collection, state.id), (record.timestamp_ms, 0.0))
            named += record.timestamp_ms > sent and state.observed_at.timestamp() <= removed
    return named


def unbounded(samples: Sequence[Sample]) -> int:
    """I6: looks at a worker that saw too much memory or too many open files."""
    memory = sum(size > MEMORY_BYTES for sample in samples for size in sample.memory.values())
    return memory + sum(count > OPEN_FILES for sample in samples for count in sample.files.values())


def stalls(logs: Iterable[str]) -> int:
    """I6: steps in which an event loop was busy for over 200 ms."""
    return sum(log.count(STALL) for log in logs)


def unclean_lines(logs: Iterable[str], injected: str) -> int:
    """I7: tracebacks but of errors that begin like the injected one, text of documents, lines beyond 100 a minute."""
    unclean = 0
    for log in logs:
        unclean += log.count(MARK)
        unclean += sum(not (injected and error.startswith(injected)) for error in _TRACE.findall(log))
        minutes = Counter(found[0] for line in log.splitlines() if (found := _MINUTE.match(line)))
        unclean += sum(max(0, count - LINES_A_MINUTE) for count in minutes.values())
    return unclean


def _is_retraction(record: Record) -> bool:
    return text(record, "ce_type") == "nearstream.retraction.v1"


def _lasting(value: bytes, original_of: Mapping[Place, Place]) -> str:
    """An event without what may differ between two statements of it."""
    event = json.loads(value)
    for state in (event[name] for name in ("newer", "older") if name in event):
        state["partition"], state["offset"] = original_of[state["partition"], state["offset"]]
    event.pop("degraded", None)
    event["low_confidence"] = [reason for reason in event.get("low_confidence", []) if reason != MANY_SIBLINGS]
    return json.dumps(event, sort_keys=True)


def _origins(value: bytes) -> list[tuple[int, int]]:
    """Where both documents of an event stood; none of a retraction."""
    event = json.loads(value)
    states = [event[name] for name in ("newer", "older") if name in event]
    return [(state["partition"], state["offset"]) for state in states]
