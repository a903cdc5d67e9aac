"""The newest dead letters are in memory, and all that were read are counted."""

from nearstream.schemas.topics.dead_letter import Reason
from nearstream.workers.http.live.letters import LETTERS, Letters
from tests.support.live import NOW_MS, dead_letter


def test_dead_letters_are_counted_by_reason_once_each() -> None:
    letters = Letters()
    for offset in (0, 1, 1, 0):
        letters.add(dead_letter(b"{", offset))
    letters.add(dead_letter(b"{}", 2, reason=Reason.NO_CONTENT, written_ms=NOW_MS - 60_000))
    letters.add(dead_letter(b"{}", 3, reason=Reason.NO_CONTENT, written_ms=NOW_MS - 3_600_000))
    shown = letters.shown(NOW_MS)
    assert [(each.reason, each.count, sum(each.minutes)) for each in shown.reasons] == [
        ("no_content", 2, 1),
        ("not_json", 2, 2),
    ]
    assert shown.reasons[0].minutes[-2:] == (1, 0)
    assert [letter.offset for letter in shown.letters] == [0, 1, 2, 3]
    assert letters.within_an_hour(NOW_MS) == 3
    assert letters.within_an_hour(NOW_MS + 2 * 3_600_000) == 0


def test_a_letter_shows_the_beginning_of_its_record() -> None:
    letters = Letters()
    stored = dead_letter(bytes(range(256)) * 40)
    letters.add(stored)
    detail = letters.detail(stored.dead_id)
    assert detail is not None
    assert detail.value == (bytes(range(256)) * 16).hex()
    assert (detail.letter.size, detail.payload) == (256 * 40, "full")
    assert detail.key == r"<img src=x onerror=alert(1)>\xff"
    assert detail.headers == (("x", None),)
    assert letters.detail("unknown") is None


def test_letters_and_reasons_have_bounds() -> None:
    letters = Letters()
    first = dead_letter(b"{", 0)
    letters.add(first)
    for offset in range(1, LETTERS + 1):
        letters.add(dead_letter(b"{", offset))
    assert letters.detail(first.dead_id) is None
    shown = letters.shown(NOW_MS)
    assert (len(shown.letters), shown.reasons[0].count) == (LETTERS, LETTERS + 1)
