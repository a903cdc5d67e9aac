"""`redundant` is never said of text that is nowhere else."""

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

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
résumé resume|not |11 1|𝄞 𝄢"""
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


Edit = Callable[[Sequence[str], random.Random], list[str]]
TEXTS = {
    "prose": f"{BEFORE} {AFTER} Pallets that arrive after four stay in shed nine overnight and are weighed again. " * 3,
    "short": "The gate closes on Tuesday at nine.",
    "table": "| shed | tons | day |\n| 4 | 12.5 | Mon |\n| 5 | 12.5 | Mon |\n| 6 | 13.5 | Tue |\n" * 8,
    "repetition": "buy now " * 60,
    "Russian": "Северные ворота порта будут закрыты во вторник из-за замены троса, поэтому грузовики едут по пандусу. "
    * 3,
    "Chinese": "去年 秋天 港务局 宣布 北门 将于 星期二 关闭 因为 起重机 需要 更换 新的 缆索 卡车 应当 走 东边 的 坡道 "
    * 3,
    "Arabic": "سيغلق مكتب الميناء بوابته الشمالية يوم الثلاثاء لأن الرافعة تحتاج إلى كابل جديد والشاحنات تسلك المنحدر "
    * 3,
    "Hindi": "बंदरगाह कार्यालय मंगलवार को अपना उत्तरी द्वार बंद करेगा क्योंकि क्रेन को नई केबल चाहिए और ट्रक पूर्वी रास्ता लेंगे " * 3,
}


def replaced(words: Sequence[str], random: random.Random) -> list[str]:
    at = random.randrange(len(words))
    return [*words[:at], f"{words[at]}{random.randrange(10)}", *words[at + 1 :]]


def added(words: Sequence[str], random: random.Random) -> list[str]:
    at = random.choice((0, len(words) // 2, len(words)))
    return [*words[:at], random.choice(words), *words[at:]]


def removed(words: Sequence[str], random: random.Random) -> list[str]:
    at = random.choice((0, len(words) // 2, len(words) - 1))
    return [*words[:at], *words[at + 1 :]]


def moved(words: Sequence[str], random: random.Random) -> list[str]:
    at = random.randrange(1, len(words))
    return [*words[at:], *words[:at]]


def last_letter(words: Sequence[str], random: random.Random) -> list[str]:
    at = random.randrange(len(words))
    return [*words[:at], words[at][:-1] + random.choice("wzq789"), *words[at + 1 :]]


@pytest.mark.parametrize("edit", [replaced, added, removed, moved, last_letter])
@pytest.mark.parametrize("kind", TEXTS)
async def test_no_edited_text_is_redundant(kind: str, edit: Edit) -> None:
    chance, words = random.Random(f"{kind} {edit.__name__}"), TEXTS[kind].split()
    for _ in range(12):
        changed = edit(words, chance)
        for one, other in pairwise((words, changed, words)):
            is_equal = letters_of(one) == letters_of(other)
            assert await is_redundant(" ".join(one), " ".join(other)) == is_equal, (one, other)


def letters_of(words: Sequence[str]) -> list[str]:
    """Return the words that have letters, and for Chinese its letters without blanks."""
    found = [re.sub(r"[^\w.]", "", word).strip(".").casefold() for word in words]
    text = " ".join(each for each in found if each)
    return [re.sub(r"(?<=[\u4e00-\u9fff])\s|\s(?=[\u4e00-\u9fff])", "", text)]
