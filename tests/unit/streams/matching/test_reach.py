"""To which mails the labels of a family reach, and by what."""

from datetime import timedelta

import pytest

from nearstream.schemas.checks.check import Labels
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.labels.label import LabelKind
from nearstream.streams.matching.labels import FamilyDetails, Labelled, Labelling
from nearstream.streams.matching.reach import reach
from nearstream.streams.store.record import Recorded, pack_signature, unpack_record
from tests.support.made_up import NOON, STANDARD, sign, words

LONG, FORM = words(1, 90), words(1, 40)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def mail(
    name: str,
    text: list[str] = LONG,
    sender: str = "",
    links: str = "",
    attached: str = "",
    before: timedelta = timedelta(),
) -> Signature:
    """Sign a mail, by default of a domain of its own, that was observed some time before noon."""
    said = {"sender-domain": sender or name, "links": links, "attachments": attached}
    labels = {label: value for label, value in said.items() if value}
    return STANDARD.kept(sign(text, name, source="mail", labels=labels, observed_at=NOON - before))


def recorded(signature: Signature) -> Recorded:
    version = bytes.fromhex(signature.version)
    return unpack_record(pack_signature(signature), STANDARD.name, version, signature.observed_at_ms)


def family(
    *others: Signature, spam: Signature | None = None, ham: Signature | None = None, weight: int = 1
) -> FamilyDetails:
    """Return a family with labels on one mail of each kind, and its other members."""
    given: list[tuple[LabelKind, Signature | None]] = [("spam", spam), ("ham", ham)]
    labelled = [Labelled(recorded(one), Labelling(kind, weight, 0)) for kind, one in given if one is not None]
    labels = Labels(spam=weight * (spam is not None), ham=weight * (ham is not None))
    return FamilyDetails(labels, labelled=tuple(labelled), others=tuple(map(recorded, others)))


def wave(count: int = 8, links: str = "") -> list[Signature]:
    return [mail(f"wave{number}", [*LONG, f"own{number}"], links=links) for number in range(count)]


def notices(hours: int, links: str = "a" * 12) -> list[Signature]:
    """Return notices of one firm, over some hours."""
    return [mail(f"n{at}", [*LONG, f"no{at}"], "firm", links, before=HOUR * hours * at / 11) for at in range(12)]


def said(asked: Signature, details: FamilyDetails) -> tuple[str | None, str]:
    found = reach(asked, details)
    return found.known, found.witness


def test_a_near_copy_is_known_only_if_many_domains_send_such_mail() -> None:
    asked = mail("asked", [*LONG, "other"])
    assert said(asked, family(*wave(), spam=mail("bad"))) == ("known_bad", "broad")
    assert said(asked, family(*wave(3), spam=mail("bad"))) == ("near_bad", "near")


def test_a_form_and_a_mail_with_another_file_only_resemble() -> None:
    bad = mail("bad", FORM, attached="1f")
    assert said(mail("asked", [*FORM, "other"]), family(*wave(), spam=bad)) == ("near_bad", "near")
    other = mail("asked", [*LONG, "other"], attached="2e")
    assert said(other, family(*wave(), spam=mail("bad", attached="1f"))) == ("near_bad", "near")


def test_an_equal_mail_of_more_than_eight_words_is_known_of_any_family() -> None:
    assert said(mail("asked", FORM), family(spam=mail("bad", FORM))) == ("known_bad", "equal")
    assert said(mail("asked", FORM[:8]), family(*wave(), spam=mail("bad", FORM[:8]))) == ("near_bad", "near")
    for links in ("b" * 12, ""):
        assert said(mail("asked", FORM, links=links), family(spam=mail("bad", FORM, links="a" * 12)))[1] == "near"


def test_a_label_on_a_copy_of_a_notice_does_not_reach_whoever_has_sent_it_for_days() -> None:
    phish, notice = mail("bad", links="b" * 12), mail("asked", [*LONG, "new"], "firm", "a" * 12)
    assert said(notice, family(*notices(24), *wave(), spam=phish)) == (None, "established")
    assert said(notice, family(*notices(2), *wave(), spam=phish)) == ("near_bad", "near")  # it may be a wave too
    burst = [mail("first", [*LONG, "no"], "firm", "a" * 12, before=DAY), *notices(2)]
    assert said(notice, family(*burst, *wave(), spam=phish)) == ("near_bad", "near")
    assert said(mail("other", links="b" * 12), family(*notices(24), *wave(), spam=phish)) == ("known_bad", "equal")


def test_only_mail_of_an_authenticated_domain_is_that_of_whoever_has_sent_it_for_days() -> None:
    phish, forged = mail("bad", [*LONG, "bad"], "firm-unproven"), mail("asked", [*LONG, "new"], "firm-unproven")
    of_firm = mail("asked", [*LONG, "new"], "firm", "a" * 12)
    assert said(of_firm, family(*notices(24), *wave(), spam=phish)) == (None, "established")
    known = [mail(f"f{at}", [*LONG, f"no{at}"], "firm-unproven", before=HOUR * 4 * at) for at in range(9)]
    for others in (notices(24), known):
        assert said(forged, family(*others, *wave(), spam=mail("bad", [*LONG, "bad"]))) == ("known_bad", "broad")
    assert said(forged, family(ham=mail("good", LONG, "firm-unproven"))) == (None, "")


def test_an_established_sender_is_reached_by_a_link_that_its_other_mails_lack() -> None:
    phish = mail("bad", links=f"{'a' * 12} {'b' * 12}")
    for links, expected in (
        (f"{'a' * 12} {'b' * 12}", ("known_bad", "link")),
        (f"{'a' * 12} {'c' * 12}", (None, "established")),
    ):
        asked = mail("asked", [*LONG, "new"], "firm", links)
        assert said(asked, family(*notices(24), *wave(), spam=phish)) == expected


def test_a_label_on_a_mail_of_its_domain_reaches_an_established_sender_and_is_disputed_by_older_mails() -> None:
    bad = mail("bad", sender="firm", links="a" * 12)
    notice = mail("asked", [*LONG, "new"], "firm", "a" * 12)
    assert said(notice, family(*notices(2), spam=bad)) == ("near_bad", "near")
    older = [mail(f"old{at}", [*LONG, f"no{at}"], "firm", "a" * 12, before=2 * DAY) for at in range(12)]
    found = reach(notice, family(*older, spam=bad))
    assert (found.known, found.labels.spam, found.unlabelled) == ("disputed", 1, 12)
    assert said(notice, family(*older, spam=bad, weight=2)) == ("near_bad", "near")


def test_ham_reaches_mail_of_its_sender_without_other_links_and_files_and_what_is_equal() -> None:
    good = mail("good", sender="firm", links="a" * 12)
    near = [*LONG, "other"]
    assert said(mail("asked", near, "firm", "a" * 12), family(ham=good)) == ("known_good", "near")
    assert said(mail("asked", LONG, "other", "a" * 12), family(ham=good)) == ("known_good", "equal")
    for sender, links, attached in (("other", "a" * 12, ""), ("firm", "b" * 12, ""), ("firm", "a" * 12, "1f")):
        assert said(mail("asked", near, sender, links, attached), family(ham=good)) == (None, "")
    assert said(mail("asked", LONG, "other", "b" * 12), family(ham=good)) == (None, "")


@pytest.mark.parametrize(("links", "expected"), [("a" * 12, None), ("b" * 12, "known_bad")])
def test_ham_speaks_against_spam_unless_the_mail_links_to_other_sites(links: str, expected: str | None) -> None:
    details = family(*wave(), spam=mail("bad", links="c" * 12), ham=mail("good", sender="firm", links="a" * 12))
    assert reach(mail("asked", [*LONG, "other"], links=links), details).known == expected
