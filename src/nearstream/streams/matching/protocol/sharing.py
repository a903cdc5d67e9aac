"""Lets the first of several copies in a batch enter a bucket for all of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.tally import keys_without, split
from nearstream.streams.native import native


def entered_by_others(cases: Sequence[Case]) -> dict[Case, Mapping[Case, bytes]]:
    """Return the keys that documents leave to others of their batch, by who enters these.

    Documents with one hint seem to be copies of each other, and of the document that is the hint.
    """
    groups = defaultdict[int, list[Case]](list)
    for case in sorted(cases, key=lambda case: case.number):
        groups[case.hint or case.number].append(case)
    left: dict[Case, Mapping[Case, bytes]] = {}
    for group in groups.values():
        entering: dict[bytes, Case] = {}
        for case in group if len(group) > 1 else ():
            others = defaultdict[Case, list[bytes]](list)
            for key in split(case.words):
                first = entering.setdefault(key, case)
                if first is not case:
                    others[first].append(key)
            if others:
                left[case] = {first: b"".join(keys) for first, keys in others.items()}
    return left


def rely(case: Case, first: Case, keys: bytes) -> None:
    """Let a document leave out keys that another one has asked for, and give it what was found there.

    The other one is in these buckets now, or relies on its hint there.
    """
    entered = keys_without(keys, first.left)
    for some, number in ((entered, first.number), (keys_without(keys, entered), 0)):
        if some:
            case.relied.add(number or first.hint)
            case.found.append((some, native.held_for(first.found, some, number)))
    case.left += keys
