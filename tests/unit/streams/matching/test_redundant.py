"""`redundant` is never said of text that is nowhere else."""

import re

import pytest

from nearstream.schemas.documents.document import MAIL_SOURCE, Document
from nearstream.streams.fingerprints.hashing import HashKey
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
1,240.50 1.240,50|.5 5|a==b a!=b|a<=b a<b|a+b a;b|if&&x if!x|2*3 2/3|✓ ✗|🟢 🔴|৳5 ฿5|x⟶y x⟵y|€5 £5"""
SAME = """US us|re-sign re sign|№5 no5|m² m2|ﬁn fin|“no” "no"|a\u00adb ab|Straße STRASSE|a… a.|(a) a|x₁ x1"""


async def is_redundant(text: str, earlier: str, source: str = "press") -> bool:
    matcher, signer = Matcher(local_store(), LETTERS, KEY), Signer(LETTERS, KEY)
    said = None
    for name, each in (("earlier", earlier), ("later", text)):
        document = Document(id=name, text=each, observed_at=NOON, source=source)
        said = (await matcher.match(signer.sign(document))).verdict
    assert said is not None
    return said.redundant is True


def pairs(table: str) -> list[list[str]]:
    return [each.split(" ", 1) for each in re.split(r"[|\n]", table)]


@pytest.mark.parametrize(("one", "other"), pairs(OTHER))
async def test_a_text_with_another_sign_or_number_is_not_redundant(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        assert not await is_redundant(f"{BEFORE} {first} {AFTER}", f"{BEFORE} {second} {AFTER}")


@pytest.mark.parametrize(("one", "other"), pairs(SAME))
async def test_a_text_in_another_spelling_of_the_same_letters_is_redundant(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        assert await is_redundant(f"{BEFORE} {first} {AFTER}", f"{BEFORE} {second} {AFTER}")


async def test_a_mail_is_never_redundant_since_its_subject_may_be_nowhere_else() -> None:
    assert not await is_redundant(f"{BEFORE} {AFTER}", f"{BEFORE} {AFTER}", MAIL_SOURCE)
