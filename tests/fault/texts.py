"""What is true of the documents of one input, whatever arrived when."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import encode_json
from nearstream.schemas.verdicts.events import Event
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.matching.arriving import pack_keys
from nearstream.streams.relations.rules import decide
from nearstream.streams.relations.verdict import is_copy, relate
from nearstream.streams.store.messages import Entry
from nearstream.streams.store.store import local_store
from nearstream.workers.pipeline.deployment import Deployment

Place = tuple[int, int]
"""Partition and offset of a record of `documents`."""

Text = tuple[str, bytes]
"""The collection and the digest of a document."""


@dataclass(frozen=True)
class Texts:
    """How the distinct texts of one input are related."""

    # For each text, those with a relation that is sent, and its copies.
    related: Mapping[Text, set[Text]] = field(default_factory=dict)
    # For each text, those that are near-duplicates of it.
    copies: Mapping[Text, set[Text]] = field(default_factory=dict)

    def groups(self) -> list[set[Text]]:
        """Return texts that are connected by copies of copies."""
        found, left = [], set(self.copies)
        while left:
            group, edge = set[Text](), {left.pop()}
            while edge:
                group |= edge
                edge = set[Text]().union(*(self.copies[text] for text in edge)) - group
            left -= group
            found.append(group)
        return found

    def are_all_copies(self, group: set[Text]) -> bool:
        """Return whether each of these texts is a copy of each other one."""
        return all(self.copies[text] >= group - {text} for text in group)

    def pairs(self) -> Iterator[tuple[Text, Text]]:
        """Yield each related pair once."""
        return ((one, other) for one, others in self.related.items() for other in others if one < other)


def text_of(signature: Signature) -> Text:
    """Return what two documents have in common if their texts are equal."""
    return signature.collection, signature.digest


def compare_all(deployment: Deployment, signatures: Iterable[Signature]) -> Texts:
    """Compare all texts that share an index key, without an index and its limits.

    Texts of one document or lineage meet without sharing a key, so they can be copies, but a relation of texts is only
    looked for among those that share one.
    """
    signatures = list(signatures)
    texts = {text_of(signature): signature for signature in signatures}
    related: dict[Text, set[Text]] = {text: set() for text in texts}
    copies: dict[Text, set[Text]] = {text: set() for text in texts}
    sent = frozenset(deployment.settings.relations.split())
    sharing = _sharing_keys(deployment, texts)
    for one, other in sharing | _of_one_lineage(signatures):
        relation, copied = _compare(deployment, texts[one], texts[other])
        if copied:
            _link(copies, one, other)
        if copied or ((one, other) in sharing and relation in sent):
            _link(related, one, other)
    return Texts(related, copies)


def _link(found: dict[Text, set[Text]], one: Text, other: Text) -> None:
    found[one].add(other)
    found[other].add(one)


def _sharing_keys(deployment: Deployment, texts: Mapping[Text, Signature]) -> set[tuple[Text, Text]]:
    """Return the pairs of different texts that share a band or an anchor."""
    sharing: dict[tuple[str, bytes], set[Text]] = defaultdict(set)
    for text, signature in texts.items():
        keys = deployment.scheme.keys(signature, deployment.key)
        for key in (*keys.bands, *keys.anchors):
            sharing[text[0], key].add(text)
    return {(one, other) for texts in sharing.values() for one in texts for other in texts if one < other}


def _of_one_lineage(signatures: Iterable[Signature]) -> set[tuple[Text, Text]]:
    """Return the pairs of different texts that documents of one id or one lineage have."""
    named: dict[str, set[Text]] = defaultdict(set)
    for signature in signatures:
        named[signature.document_key].add(text_of(signature))
        if signature.lineage:
            named[f"{signature.collection} {signature.lineage}"].add(text_of(signature))
    return {(one, other) for texts in named.values() for one in texts for other in texts if one < other}


def _compare(deployment: Deployment, one: Signature, other: Signature) -> tuple[str, bool]:
    """Return the relation of two texts, and whether they are copies."""
    kept = sorted(map(deployment.scheme.kept, (one, other)), key=_order)
    numbers = estimate(kept[1], kept[0])
    verdict = relate(kept[1], kept[0], numbers, deployment.thresholds)
    return verdict.relation, is_copy(decide(numbers, deployment.thresholds))


def _order(signature: Signature) -> tuple[int, str, str]:
    return signature.observed_at_ms, signature.id, signature.version


async def true_events(
    deployment: Deployment, signatures: Mapping[Place, Signature], found: Iterable[tuple[str, bytes]]
) -> dict[str, bytes]:
    """Return what a process says about the documents of each event if it knows no others.

    Two that share no key may have met in a stream, through a third document whose family one of them represents. So
    where it sends nothing, it is asked again with two that meet.
    """
    true: dict[str, bytes] = {}
    for event_id, value in dict(found).items():
        named = [each for place in places_of(json.loads(value)) if (each := signatures.get(place))]
        said = await _said(deployment, named, meet=False) or await _said(deployment, named, meet=True)
        true.update((event.event_id, encode_json(event)) for event in said if event.event_id == event_id)
    return true


async def _said(deployment: Deployment, named: Sequence[Signature], *, meet: bool) -> list[Event]:
    """Return the events about these documents. If they shall meet, each is found by the keys of all."""
    store = local_store(replace(deployment.index_limits, retention_seconds=0))
    matcher, said = deployment.matcher(store), list[Event]()
    words = b"".join(pack_keys(deployment.scheme.keys(each, deployment.key))[1] for each in named)
    for at, each in enumerate(named):
        said += (await matcher.match(each)).events
        if meet:
            await store.enter([Entry(store.shape.number(0, at), 0, words)])
    return said


def places_of(event: dict[str, dict[str, int]]) -> list[Place]:
    """Return the places of the documents of an event, the older first. A retraction has none."""
    states = [event[name] for name in ("older", "newer") if name in event]
    return [(state["partition"], state["offset"]) for state in states]
