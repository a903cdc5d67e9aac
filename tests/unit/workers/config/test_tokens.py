"""Tokens of the HTTP API: how they are written, and what is wrong with them."""

import pytest

from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.config.tokens import TOKENS, ApiToken, parse_tokens
from nearstream.workers.http.requests import Gate

ONE, OTHER = "one-token-of-mail", "another-token-of-pages"


def test_a_line_holds_a_token_with_its_collections_and_rate() -> None:
    text = (
        f"# of the mail servers\n{ONE} mail,news 200\n\n{OTHER}\nthird-token-of-nobody *\nfourth-token-of-all * 0.5\n"
        "fifth-token-of-a-bank mail 2 bare\nsixth-token-of-mail mail 0 against=good,bad\n"
        "seventh-token-of-all against=good\neighth-token-of-a-bank mail 2 bare against=good\n"
    )
    assert parse_tokens(text) == (
        ApiToken(ONE, frozenset({"mail", "news"}), 200.0),
        ApiToken(OTHER),
        ApiToken("third-token-of-nobody"),
        ApiToken("fourth-token-of-all", rate=0.5),
        ApiToken("fifth-token-of-a-bank", frozenset({"mail"}), 2.0, is_bare=True),
        ApiToken("sixth-token-of-mail", frozenset({"mail"}), against=frozenset({"good", "bad"})),
        ApiToken("seventh-token-of-all", against=frozenset({"good"})),
        ApiToken("eighth-token-of-a-bank", frozenset({"mail"}), 2.0, is_bare=True, against=frozenset({"good"})),
    )
    assert parse_tokens("") == ()


REFUSED = (
    (f"{ONE}\nshort *", "line 2: expected at least 16 characters"),
    ("against=good", "line 1: expected at least 16"),
    (f"{ONE} Mail", "line 1: expected token, collections and rate"),
    (f"{ONE} mail 0 bare", "line 1: expected a rate above 0"),
    (f"{ONE} mail 5 more", "line 1: expected"),
    (f"{ONE} mail fast", "line 1: expected a rate"),
    (f"{ONE} mail nan", "line 1: expected a rate"),
    (f"{ONE} against=", "line 1: expected against= with at most 4"),
    (f"{ONE} against=a,b,c,d,e", "line 1: expected against= with at most 4"),
    (f"{ONE} against=a mail", "line 1: expected token"),
    ("ünicode-token-of-mail", "line 1: expected a token in ASCII"),
    (f"{ONE}\n{ONE} mail", "each once"),
    ("# no token yet\n", "expected a token, found comments"),
    ("\n".join(f"{ONE}-{each}" for each in range(TOKENS + 1)), "at most 256 tokens"),
)


def test_a_line_that_cannot_be_read_is_refused_and_not_quoted() -> None:
    for text, expected in REFUSED:
        with pytest.raises(SettingsError, match=expected) as raised:
            load({"NEARSTREAM_API_TOKEN": text})
        assert ONE not in str(raised.value)


def test_a_rate_is_kept_over_time_and_for_each_token_alone() -> None:
    gate = Gate(f"{ONE} * 10\n{OTHER} * 0.5")

    def asked(token: str, now: float, times: int) -> int:
        return sum(not gate.access(f"Bearer {token}", now)[1] for _ in range(times))

    assert asked(ONE, 100.0, 30) == 10
    assert asked(OTHER, 100.0, 30) == 1
    assert asked(ONE, 100.5, 30) == 5
    assert asked(ONE, 1_000.0, 30) == 10
    assert asked(OTHER, 101.0, 30) == 0
    assert asked(OTHER, 102.0, 30) == 1
