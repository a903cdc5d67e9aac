"""Which mails the labels of a family reach, and by what.

Mails of one family may be sent by many people who use one form, and a phishing mail copies a true notice. So a label
reaches a mail by more than its text: by who sends such mails, for how long, and by links and attachments.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from nearstream.schemas.checks.check import Labels, Witness
from nearstream.schemas.documents.document import (
    ATTACHMENTS_LABEL,
    LINKS_LABEL,
    LINKS_UNREAD,
    SENDER_DOMAIN_LABEL,
    UNPROVEN,
)
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.matching.labels import NO_LABELS, FamilyDetails
from nearstream.streams.store.limits import DAY_MS
from nearstream.streams.store.record import Comparable, Recorded

Known = Literal["known_bad", "near_bad", "known_good", "disputed"]
CLEARLY = 3  # times the weight of the other side
_WORDS_MIN = 8  # of an equal mail, because "yes" and "thank you" are everybody's
_FORM_WORDS = 64  # Below this a near copy may be a form, such as an invoice, that many use.
_BROAD_MIN = 5  # members of a family, and domains that sent them: all waves have more, and few notices
_ESTABLISHED_MIN = 5  # earlier mails of a domain without a label
_ESTABLISHED_MS = DAY_MS // 2  # between these and the last one of the domain: more than one burst
_DISPUTED_MIN = 10  # older mails without a label, for each label
_BESIDE = (ATTACHMENTS_LABEL, LINKS_LABEL)


@dataclass(frozen=True)
class Reach:
    """What the labels of a family say of a mail."""

    known: Known | None = None  # None: they do not reach it, or contradict each other
    witness: Witness = ""  # by what they reach it
    labels: Labels = NO_LABELS  # those that reach it
    unlabelled: int = 0  # members that are older than the labelled ones by half a day, and have no label


def reach(asked: Signature, details: FamilyDetails) -> Reach:
    """Return what the labels of a family say of a mail.

    The mail is a copy of its members, or has a passage of their text.
    """
    spams, hams = details.of("spam"), details.of("ham")
    named = {asked.id, *(each.document.id for each in details.labelled)}
    others = [each for each in details.others if each.id not in named]
    witness = _witness(asked, spams, others)
    good = details.labels.ham if _is_of(asked, hams) else 0
    labels = Labels(spam=details.labels.spam if witness not in ("", "established") else 0, ham=good)
    if good and good >= CLEARLY * labels.spam:
        return Reach("known_good", "equal" if _is_equal(asked, hams) else "near", labels)
    against = 0 if links_differ(asked, hams) else details.labels.ham
    if not labels.spam or labels.spam < CLEARLY * against:
        return Reach(None, "" if labels.spam else witness, labels)
    first_ms = min(each.observed_at_ms for each in spams)
    older = [each for each in others if each.observed_at_ms < first_ms - _ESTABLISHED_MS]
    is_foreign = witness in ("link", "attachment") or bool(hosts(asked) - _all_hosts(older))
    if len(older) >= _DISPUTED_MIN * labels.spam and not is_foreign:
        return Reach("disputed", witness, labels, len(older))
    return Reach("near_bad" if witness == "near" else "known_bad", witness, labels, len(older))


def _witness(asked: Signature, spams: Sequence[Recorded], others: Sequence[Recorded]) -> Witness:
    """Return by what labels of spam reach a mail, or nothing."""
    words = n_words(asked)
    own = [each for each in others if of_one_domain(each, asked)]
    is_labelled = any(of_one_domain(each, asked) for each in spams)
    if not spams:
        return ""
    if len(own) >= _ESTABLISHED_MIN and _is_proven(asked):
        if foreign := _shared_beside(asked, spams, own):
            return foreign
        if not is_labelled:
            return "established" if _is_over_days(own) else "near"
    if words > _WORDS_MIN and _is_equal(asked, spams):
        return "equal"
    domains = {_domain(each) for each in (*others, *spams)} - {None}
    is_form = words < _FORM_WORDS or not _has_attachments_of(asked, spams)
    return "near" if is_form or len(domains) < _BROAD_MIN else "broad"


def _is_over_days(mails: Sequence[Recorded]) -> bool:
    times = sorted(each.observed_at_ms for each in mails)
    return times[-1] - times[_ESTABLISHED_MIN - 1] >= _ESTABLISHED_MS


def _shared_beside(asked: Comparable, spams: Sequence[Recorded], own: Sequence[Recorded]) -> Witness:
    """Return what a mail shares with labelled ones alone, beside its text."""
    if hosts(asked) & _all_hosts(spams) - _all_hosts(own):
        return "link"
    attachments = asked.labels.get(ATTACHMENTS_LABEL)
    is_usual = any(attachments == each.labels.get(ATTACHMENTS_LABEL) for each in own)
    return "attachment" if attachments and not is_usual and _has_attachments_of(asked, spams) else ""


def _is_of(asked: Comparable, hams: Sequence[Recorded]) -> bool:
    """Return whether labels of ham reach a mail.

    It is equal to one of theirs, or has the sender and no other links and attachments.
    """
    are_own = _is_proven(asked) and any(of_one_domain(each, asked) for each in hams)
    has_no_other = hosts(asked) <= _all_hosts(hams) and _has_attachments_of(asked, hams)
    return _is_equal(asked, hams) or (are_own and has_no_other)


def links_differ(asked: Comparable, others: Sequence[Comparable]) -> bool:
    """Return whether a mail links to sites, others too, and none is common."""
    own, known = hosts(asked), _all_hosts(others)
    return bool(own and known) and own.isdisjoint(known)


def n_words(mail: Signature) -> int:
    """Return the words of a mail, in a script without spaces half of its characters."""
    return mail.characters // 2 if mail.spaceless else mail.words


def of_one_domain(one: Comparable, other: Comparable) -> bool:
    """Return whether one domain has sent both mails."""
    return _domain(one) is not None and _domain(one) == _domain(other)


def hosts(mail: Comparable) -> frozenset[str]:
    """Return the known hashes of the sites that a mail links to."""
    return frozenset(mail.labels.get(LINKS_LABEL, "").split()) - {LINKS_UNREAD}


def _all_hosts(mails: Iterable[Comparable]) -> frozenset[str]:
    return frozenset[str]().union(*map(hosts, mails))


def _domain(mail: Comparable) -> str | None:
    return mail.labels.get(SENDER_DOMAIN_LABEL)


def _is_proven(mail: Comparable) -> bool:
    """Return whether the domain of a mail is authenticated, or no results are known."""
    return not (_domain(mail) or "").endswith(UNPROVEN)


def _has_attachments_of(asked: Comparable, others: Iterable[Recorded]) -> bool:
    """Return whether a mail has no attachments, or those of one of others."""
    attachments = asked.labels.get(ATTACHMENTS_LABEL)
    return attachments is None or any(attachments == each.labels.get(ATTACHMENTS_LABEL) for each in others)


def _is_equal(asked: Comparable, others: Iterable[Recorded]) -> bool:
    """Return whether a mail is equal to another one before anything is masked."""
    return any(
        asked.raw_digest == each.raw_digest and all(asked.labels.get(name) == each.labels.get(name) for name in _BESIDE)
        for each in others
    )
