"""The invariants of families, each a function that returns a count of violations."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil

import msgspec

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.evidence import family_id
from nearstream.schemas.documents.record import ConsumerRecord, traceparent
from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from tests.fault.oracle import Expected
from tests.fault.texts import Place, Text, places_of, text_of

LOSS = 0.005  # share of related pairs that need not be connected though the single process connects them


@dataclass(frozen=True)
class Partition:
    """Documents in families."""

    family: Mapping[Place, Hashable]  # the family of each document that has a verdict, by its place
    linked: frozenset[tuple[Hashable, Hashable]]  # pairs of families that an event connects


def partition(verdicts: Iterable[bytes], events: Iterable[bytes], expected: Expected) -> Partition:
    """Return the families that verdicts tell of, and how events connect them.

    Two ids name one family if the founder of one belongs to the other: it was joined before it joined itself.
    """
    told = [verdict for verdict in map(decode_verdict, verdicts) if place_of(verdict) in expected.signatures]
    founded = defaultdict[str, list[Place]](list)
    for place, signature in expected.signatures.items():
        founded[family_id(signature.document_key, signature.version, signature.scheme)].append(place)
    joined = _Joined()
    for verdict in told:
        joined.join(place_of(verdict), verdict.family.id)
    for name in {verdict.family.id for verdict in told}:
        for place in founded[name]:
            joined.join(place, name)
    family = {place: joined.root(place) for place in map(place_of, told)}
    ends = [[family.get(place) for place in places_of(msgspec.json.decode(value))] for value in events]
    return Partition(family, frozenset((end, other) for pair in ends for end, other in (pair, pair[::-1])))


class _Joined:
    """Sets of things that are joined step by step."""

    def __init__(self) -> None:
        self._parent: dict[Hashable, Hashable] = {}

    def root(self, thing: Hashable) -> Hashable:
        while (parent := self._parent.get(thing, thing)) != thing:
            self._parent[thing] = self._parent.get(parent, parent)
            thing = parent
        return thing

    def join(self, one: Hashable, other: Hashable) -> None:
        self._parent[self.root(one)] = self.root(other)


def decode_verdict(value: bytes) -> DocumentVerdict:
    """Decode a verdict."""
    verdict = decode_event(value)
    assert isinstance(verdict, DocumentVerdict)
    return verdict


def place_of(verdict: DocumentVerdict) -> Place:
    """Return the place of the document of a verdict."""
    assert verdict.partition is not None
    assert verdict.offset is not None
    return verdict.partition, verdict.offset


def unsent(
    verdicts: Iterable[tuple[str, ConsumerRecord]], events: Iterable[tuple[str, ConsumerRecord]], expected: Expected
) -> int:
    """I9: Count events of which verdicts speak and that are not on the topics.

    An event belongs to the document whose arrival caused it, which its trace tells: two documents that see each other
    both cause the same event. Without a trace it belongs to both of its documents. Relatives of documents that were
    removed are left out: between verdict and event the other one may have gone.
    """
    caused = defaultdict[bytes | Place, set[str]](set)
    for name, record in events:
        trace = traceparent(record.headers)
        for cause in [trace] if trace else places_of(msgspec.json.decode(record.value or b"")):
            caused[cause].add(name)
    left_out, missing = _near_removed(expected), 0
    for record in dict(verdicts).values():
        verdict = decode_verdict(record.value or b"")
        place = place_of(verdict)
        signature = expected.signatures.get(place)
        if signature is not None and text_of(signature) not in left_out:
            missing += max(0, verdict.events - len(caused[traceparent(record.headers) or place]))
    return missing


def _near_removed(expected: Expected) -> set[Text]:
    """Return the texts of removed documents and of their relatives."""
    keys = set(expected.removed.values())
    removed = {text_of(each) for each in expected.signatures.values() if each.document_key in keys}
    return removed.union(*(expected.texts.related[text] for text in removed))


def split_families(families: Partition, expected: Expected) -> int:
    """I10: Count families too many among documents that are all copies of one another.

    Their order of arrival does not matter. With each state of them that died, by removal or by another text, one more
    family may begin.
    """
    by_text, deaths = _by_text(families, expected), _deaths(expected)
    too_many = 0
    for group in expected.texts.groups():
        if expected.texts.are_all_copies(group):
            found = set[Hashable]().union(*(by_text[text] for text in group))
            too_many += max(0, len(found) - 1 - sum(deaths[text] for text in group))
    return too_many


def mixed_families(families: Partition, expected: Expected) -> int:
    """I10: Count documents' texts in a family with texts that are not even copies of their copies."""
    group_of = {text: number for number, group in enumerate(expected.texts.groups()) for text in group}
    groups = defaultdict[Hashable, set[int]](set)
    for place, family in families.family.items():
        groups[family].add(group_of[text_of(expected.signatures[place])])
    return sum(len(each) - 1 for each in groups.values())


def doubled_ordinals(verdicts: Iterable[bytes]) -> int:
    """I10: Count documents with the ordinal of another document of their family."""
    members = defaultdict[tuple[str, int], set[str]](set)
    for verdict in map(decode_verdict, verdicts):
        members[verdict.family.id, verdict.family.ordinal].add(document_key(verdict.collection, verdict.id))
    return sum(len(keys) - 1 for keys in members.values())


def founderless_families(verdicts: Iterable[bytes], expected: Expected) -> int:
    """I10: Count family ids that a consumer meets without a founder.

    A consumer that groups by `family.id` finds no document with the ordinal 1 there. Only a document that was removed
    before its verdict was sent may have left a family so.
    """
    ordinals, removed = defaultdict[str, set[int]](set), set(expected.removed.values())
    for verdict in map(decode_verdict, verdicts):
        ordinals[verdict.family.id].add(verdict.family.ordinal)
    left = {
        family_id(each.document_key, each.version, each.scheme)
        for each in expected.signatures.values()
        if each.document_key in removed
    }
    return sum(1 not in found for name, found in ordinals.items() if name not in left)


def lost_texts(verdicts: Iterable[bytes], expected: Expected) -> int:
    """I12: Count texts that a consumer loses who drops all that was ever called redundant.

    Texts of which a document has no verdict are left out, because that document was removed before.
    """
    told = defaultdict[Place, set[bool]](set)
    for verdict in map(decode_verdict, verdicts):
        told[place_of(verdict)].add(verdict.redundant is True)
    dropped = defaultdict[bytes, list[bool]](list)
    for place, signature in expected.signatures.items():
        dropped[signature.raw_digest].append(True in told.get(place, {False}))
    return sum(map(all, dropped.values()))


def circles(verdicts: Iterable[bytes]) -> int:
    """I12: Count documents from which `of`, in any of the verdicts ever sent, leads into a circle."""
    ahead = defaultdict[Place, set[Place]](set)
    for verdict in map(decode_verdict, verdicts):
        if verdict.of is not None and verdict.verdict != "unchanged":
            ahead[place_of(verdict)].add((verdict.of.partition or 0, verdict.of.offset or 0))
    while ends := [place for place, others in ahead.items() if not others & ahead.keys()]:
        for place in ends:
            del ahead[place]
    return len(ahead)


def unconnected(families: Partition, expected: Expected) -> int:
    """I11: Count related pairs of texts that are connected in the single process only, beyond the share allowed.

    An event connects two texts, directly or through their families. Texts of which no document has kept its text are
    left out, because the order decides who met them.
    """
    changed = changed_documents(expected)
    lasting = {text_of(each) for each in expected.signatures.values() if each.document_key not in changed}
    pairs = [pair for pair in expected.texts.pairs() if lasting.issuperset(pair)]
    usual = partition(expected.verdicts.values(), expected.events.values(), expected)
    lost = _connected(usual, expected, pairs) - _connected(families, expected, pairs)
    return max(0, lost - ceil(LOSS * len(pairs)))


def _connected(families: Partition, expected: Expected, pairs: Iterable[tuple[Text, Text]]) -> int:
    by_text = _by_text(families, expected)
    return sum(
        any(one == other or (one, other) in families.linked for one in by_text[a] for other in by_text[b])
        for a, b in pairs
    )


def changed_documents(expected: Expected) -> set[str]:
    """Return the keys of documents that were removed or got another text."""
    texts = Counter(key for key, _ in {(each.document_key, text_of(each)) for each in expected.signatures.values()})
    return {*expected.removed.values(), *(key for key, count in texts.items() if count > 1)}


def _deaths(expected: Expected) -> Counter[Text]:
    """Return how many states of each text may have died."""
    changed = changed_documents(expected)
    return Counter(text_of(each) for each in expected.signatures.values() if each.document_key in changed)


def _by_text(families: Partition, expected: Expected) -> Mapping[Text, set[Hashable]]:
    found = defaultdict[Text, set[Hashable]](set)
    for place, family in families.family.items():
        found[text_of(expected.signatures[place])].add(family)
    return found
