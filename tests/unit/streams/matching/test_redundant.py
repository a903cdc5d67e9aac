"""`redundant` is never said of text that is nowhere else."""

import re
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from nearstream.schemas.documents.document import MAIL_SOURCE, SURROUNDINGS_LABEL, Document
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store
from tests.support.made_up import NOON

KEY = HashKey.public()
LETTERS = preset("fine", KEY)
BEFORE = "The harbour office will close its north gate on Tuesday because the crane"
AFTER = "needs a new cable, and the lorries take the eastern ramp."
# Both ways of each pair are other texts.
OTHER = """10² 102|10⁶ 106|x10₂ x102|3½ 31/2|1\u20443 1 3|-5 5|\u22125 5|5% 5|5‰ 5%|5.000 5,000|5.5 55|1:0 10
10-20 10 20|C# C|C++ C|a>b a<b|!a a|$5 5|5€ 5$|x*y x/y|a^2 a 2|≤5 ≥5|5° 5|☑ ☐|👍 👎|🇩🇪 🇫🇷|→ ←|⠃ ⠉|año ano
résumé resume|not |11 1|𝄞 𝄢|\U00031350 \U00031351|\ue041\ue042\ue043 \ue041\ue042\ue044|10:30 10.30
1,240.50 1.240,50|.5 5|a==b a!=b|a<=b a<b|a+b a;b|if&&x if!x|2*3 2/3|✓ ✗|🟢 🔴|৳5 ฿5|x⟶y x⟵y|€5 £5|acc0unt account
Massen Maßen|Busse Buße|νόμος νομός|нёбо небо|\u06a9 \u0643|ku\u0131 kui|Straße STRASSE
1,204,550 1204550|w o r d s words"""
# Both are equal by their digests, which fold.
FOLDED = """US us|re-sign re sign|№5 no5|m² m2|ﬁn fin|“no” "no"|a\u00adb ab|a… a.|(a) a|x₁ x1|(5) 5
5- 5|51 5\u2460|\u015fi \u0219i"""


async def told(*sent: Signature | str) -> list[DocumentVerdict | None]:
    """Return the verdicts of what arrives, in order. A text is the id of a document that is removed."""
    matcher = Matcher(local_store(), LETTERS, KEY)
    arrivals = [
        Arrival(f"default/{one}", None, removed_at_ms=1) if isinstance(one, str) else Arrival(one.document_key, one)
        for one in sent
    ]
    return [(await matcher.match_all([one]))[0].verdict for one in arrivals]


def signed(name: str, text: str, degraded: tuple[str, ...] = (), **fields: Any) -> Signature:  # noqa: ANN401 - any field
    document = Document(id=name, text=text, observed_at=NOON, **fields)
    return Signer(LETTERS, KEY).sign(document, degraded=degraded)


async def is_redundant(*sent: Signature | str) -> bool:
    last = (await told(*sent))[-1]
    assert last is not None
    assert last.redundant is not UNSET
    return last.redundant


def pairs(table: str) -> list[list[str]]:
    return [each.split(" ", 1) for each in re.split(r"[|\n]", table)]


@pytest.mark.parametrize(("one", "other"), pairs(OTHER) + pairs(FOLDED))
async def test_a_text_with_another_sign_letter_or_number_is_not_redundant(one: str, other: str) -> None:
    first, second = (f"{BEFORE} {each} {AFTER}" for each in (one, other))
    assert not await is_redundant(signed("a", first), signed("b", second))
    assert not await is_redundant(signed("a", second), signed("b", first))


@pytest.mark.parametrize("text", [" {}\n", "{}", "\t{} "])
async def test_a_text_in_another_layout_is_redundant(text: str) -> None:
    other = text.format(f"{BEFORE}\n\n{AFTER}".replace(" ", "\r\n", 3))
    assert await is_redundant(signed("a", f"{BEFORE} {AFTER}"), signed("b", other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"source": MAIL_SOURCE}, {"source": MAIL_SOURCE}, id="Subject and attachments of a mail"),
        pytest.param({}, {"labels": {SURROUNDINGS_LABEL: "x"}}, id="text beside the main content of a page"),
        pytest.param({"degraded": ("truncated",)}, {}, id="what was cut off of the earlier one"),
        pytest.param({}, {"degraded": ("content_unread",)}, id="what was not read of the later one"),
        pytest.param({"words": 19}, {"words": 19}, id="titles of pages of a few words"),
    ],
)
async def test_what_may_be_nowhere_else_is_not_redundant(one: dict[str, Any], other: dict[str, Any]) -> None:
    text = f"{BEFORE} {AFTER}".split()
    both = [{**fields, "text": " ".join(text[: fields.get("words", 99)])} for fields in (one, other)]
    for first, second in (both, both[::-1]):
        parts = [{name: value for name, value in fields.items() if name != "words"} for fields in (first, second)]
        assert not await is_redundant(signed("a", **parts[0]), signed("b", **parts[1]))


async def test_what_was_dropped_in_the_place_of_a_removed_document_makes_nothing_redundant() -> None:
    """Else every copy that comes later would be dropped in the place of one that was dropped."""
    copies = [signed(name, f"{BEFORE} {AFTER}") for name in "abcdef"]
    said = await told(*copies[:3], "a", *copies[3:])
    assert [each and each.redundant for each in said] == [False, True, True, None, False, True, True]
    assert [each.of.id for each in said[5:] if each and each.of] == ["d", "d"]


async def test_a_document_that_was_sent_before_its_copy_and_arrives_behind_it_is_kept_too() -> None:
    """The order in which both are decided may change by a loss, and they may not be dropped in each other's place."""
    late, early, last = (
        replace(signed(name, f"{BEFORE} {AFTER}"), origin=Origin("documents", 0, place, sent_ms))
        for name, place, sent_ms in (("late", 2, 9_000), ("early", 1, 5_000), ("last", 3, 9_500))
    )
    for order in ((late, early, last), (early, late, last)):
        said = {each.id: each for each in await told(*order) if each}
        assert (said["early"].redundant, said["early"].of) == (False, None)
        assert said["last"].redundant
    assert {each.verdict for each in await told(late, early) if each} == {"unique", "exact_duplicate"}
