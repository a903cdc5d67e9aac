"""The scheme of mail: personalised copies are found, replies are not taken for copies."""

from datetime import UTC, datetime, timedelta
from random import Random

from nearstream.schemas.documents.document import Document
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store

KEY = HashKey.public()
SCHEME = preset("mail", KEY)
FROZEN = ("mail-1-u14-k0d3e89c8-4938d537", "3aa1c5bcde7a2e44", 160)
NOTICED = ("c75b8e9ac3f0839a235aad368212bcc9", 12)  # what stands for the notice and the signature is a word
BILLS = (("Anna", 4829), ("Bob", 9931))
SEEN = datetime(2026, 3, 2, tzinfo=UTC)


def prose(words: int, seed: int) -> str:
    draw = Random(seed)
    return " ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 8))) for _ in range(words))


def document(text: str, number: int = 0) -> Document:
    return Document(id=f"<{number}@a.example>", text=text, observed_at=SEEN + timedelta(seconds=number))


async def last_verdict(*texts: str) -> DocumentVerdict:
    matcher, signer = Matcher(local_store(), SCHEME, KEY, Thresholds()), Signer(SCHEME, KEY)
    found = [await matcher.match(signer.sign(document(text, number))) for number, text in enumerate(texts)]
    verdict = found[-1].verdict
    assert verdict is not None
    return verdict


def campaign(name: str, seed: int, n_words: int = 150) -> str:
    draw = Random(f"{name} {seed}")
    body = prose(n_words, seed).split()
    for place in range(30, n_words, 60):
        body[place] = f"{draw.getrandbits(40):010x}7"
    link = f"https://shop.example/o?u={draw.getrandbits(40):x}"
    return f"Dear {name},\n\n{' '.join(body)}\n{link}\n\nSent to {name.lower()}@b.example, no. {draw.randrange(10**6)}"


async def test_nothing_is_redundant_whose_masked_text_may_be_nowhere_else() -> None:
    bills = [f"Dear {name},\n\n{prose(40, 1)}. Invoice {number} amounts to {number}.50 EUR." for name, number in BILLS]
    verdict = await last_verdict(*bills)
    assert (verdict.verdict, verdict.redundant) == ("exact_duplicate", False)


async def test_personalised_copies_are_copies() -> None:
    verdict = await last_verdict(campaign("Anna", 1), campaign("Bob", 1))
    assert verdict.verdict in ("exact_duplicate", "near_duplicate")
    assert verdict.family.ordinal == 2
    # Names that no mask knows cost little.
    changed = campaign("Carla", 1).replace("no.", "with love from the whole team, no.")
    assert (await last_verdict(campaign("Anna", 1), changed)).verdict == "near_duplicate"


async def test_two_campaigns_of_one_sender_are_no_copies() -> None:
    assert (await last_verdict(campaign("Anna", 1), campaign("Anna", 2))).verdict in ("unique", "overlap")


async def test_a_reply_is_not_a_duplicate_of_its_question() -> None:
    question = prose(120, 3)
    quoted = "\n".join(f"> {line}" for line in question.replace(" a", "\na").splitlines())
    verdict = await last_verdict(question, f"{prose(60, 4)}\n\nOn 2 March 2026 Anna wrote:\n{quoted}\n")
    assert (verdict.verdict, verdict.inner) == ("containment", "older")
    assert verdict.family.ordinal == 1


def test_the_signature_of_a_mail_with_a_notice_is_frozen() -> None:
    notice = "This e-mail and any attachments are confidential. If you are not the intended recipient, delete it."
    text = f"Schöne Grüße an alle im Büro, und bis Montag um neun\n\n{notice}\n-- \nAnna"
    signature = Signer(SCHEME, KEY).sign(document(text))
    assert (signature.digest.hex(), signature.words) == NOTICED


def test_signatures_of_mail_are_frozen() -> None:
    signature = Signer(SCHEME, KEY).sign(document(campaign("Anna", 1)))
    assert (SCHEME.name, signature.digest.hex()[:16], signature.words) == FROZEN


def test_the_raw_digest_is_that_of_the_original_text() -> None:
    first, second = (Signer(SCHEME, KEY).sign(document(campaign(name, 1))) for name in ("Anna", "Bob"))
    assert first.digest == second.digest
    assert first.raw_digest != second.raw_digest
    assert first.raw_digest == KEY.digest(" ".join(campaign("Anna", 1).split()).encode())
