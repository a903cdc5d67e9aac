"""Settings from the environment: errors name them, and secrets are never printed."""

from pathlib import Path

import pytest

from nearstream.workers.config.settings import PREFIX, Settings, SettingsError, load, shown, table

KEY = "0123456789abcdef0123456789abcdef"
PASSWORD = "correct-horse"  # noqa: S105 - a made-up one
NO_SETTING = "no such setting"
HOLDS_NOTHING = "expected a file that holds a value"
NO_PEM = "expected the path of a PEM file, not its content"
PRIVATE_KEY = f"-----BEGIN PRIVATE KEY-----\n{PASSWORD}\n"
NO_UTF8 = f"redis://:{KEY}\udcff@h:6379/0"


def refusal(**given: str) -> str:
    """Return the line with which a start with these variables is refused. No line quotes a secret."""
    with pytest.raises(SettingsError) as caught:
        load({PREFIX + name.upper(): value for name, value in given.items()})
    text = str(caught.value)
    assert "\n" not in text
    assert PASSWORD not in text
    assert KEY not in text
    return text


def test_an_empty_environment_gives_the_defaults() -> None:
    assert load({}) == load({"PATH": "/bin", "NEARSTREAMS": "x", "KAFKA": "x"}) == Settings()
    assert shown("redis", Settings().redis) == "redis://127.0.0.1:6379/0"
    assert shown("hash_key", "") == ""


def test_each_setting_has_one_variable() -> None:
    loaded = load(
        {"NEARSTREAM_KAFKA": " b1:9092,b2:9092 ", "NEARSTREAM_INDEX_SLOTS": "16", "NEARSTREAM_API_SECONDS": "0.8"}
    )
    assert (loaded.kafka, loaded.index_slots, loaded.api_seconds) == ("b1:9092,b2:9092", 16, 0.8)
    for name, value in (("index_slots", "256"), ("outage_seconds", "0"), ("retention_seconds", "0")):
        assert getattr(load({PREFIX + name.upper(): value}), name) == int(value)


# A variable, how its refusal begins behind its name, and values that are refused.
REFUSED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("kafak", f"{NO_SETTING}, is it NEARSTREAM_KAFKA?", ("x",)),
    ("redis_url", f"{NO_SETTING}, is it NEARSTREAM_REDIS?", ("x",)),
    ("topics_prefix", f"{NO_SETTING}, is it NEARSTREAM_TOPIC_PREFIX?", ("x",)),
    ("xyzzy", f"{NO_SETTING}, `env -i nearstream settings` lists all", ("x",)),
    ("", NO_SETTING, ("x", __file__)),
    ("_file", NO_SETTING, (__file__,)),
    ("hash_key_path", NO_SETTING, ("x", __file__)),
    ("hash_key_file_file", NO_SETTING, (__file__,)),
    ("index_slots", "expected a whole number, got '2.5'", ("2.5",)),
    ("index_slots", "expected a whole number, got ''", ("",)),
    ("index_slots", "expected ", ("0", "257")),
    ("api_seconds", "expected a number, got '0,8'", ("0,8",)),
    ("index_documents", "expected 1000 to 10000000000, got 999", ("999",)),
    ("dead_letter_max_ratio", "expected ", ("nan", "inf")),
    ("profile", "expected ", ("prod",)),
    ("kafka", "expected ", ("localhost", "a:9092,", "kafka://a:9092", "a:9092,b\u202e:9092", "a..b:9092")),
    ("kafka", "expected ", (f"us:{PASSWORD}@a:9092", f"a:9092,{PASSWORD}@b:9092", f"{'a' * 64}.example:9092")),
    ("kafka_username", "expected UTF-8", (NO_UTF8,)),
    ("redis", "expected UTF-8", (NO_UTF8,)),
    ("redis", "expected ", ("localhost:6379", "http://localhost", "redis+clusters://h:1", f"redis:/{PASSWORD}")),
    ("redis", "expected ", (f"redis://us:{PASSWORD}@b\u202e:6379/0", f"redis://h:6379/0?password=a#{PASSWORD}")),
    ("redis", "expected ", (f"http://:{PASSWORD}@h", f"redis://:{PASSWORD} @h")),
    # Here the host would begin in the middle of the password.
    ("redis", "expected ", tuple(f"redis://:{PASSWORD}{sign}a@h:6379/0" for sign in "/?#[]")),
    # Unicode maps these characters to # and a/c, and the error of Python's parser quotes the password.
    ("redis", "expected ", (f"redis://us:{PASSWORD}\uff03@h:6379/0", f"redis://us:{PASSWORD}@h\u2100:6379/0")),
    ("status", "expected ", (f"{PASSWORD}@a:9464",)),
    ("status_token", "line 1: expected a token in ASCII", ("ünicode-token-of-mail",)),
    ("group", "expected ", ("a b",)),
    ("namespace", "expected ", ("a{b}", "a" * 33)),
    ("topic_prefix", "expected ", ("a/",)),
    ("scheme", "expected ", ("best",)),
    ("dead_letter_payload", "expected ", ("none",)),
    # Without relations a deployment would keep an index but send no event. An empty variable is likely a mistake.
    ("relations", "expected some of exact_duplicate, ", ("", "  ", "none", "version overlaps")),
    ("verdicts", "expected all, related or none", ("", "unique", "All", "all related")),
    ("hash_key", "expected at least 32 bytes", (KEY[:31],)),
    ("redis_file", "expected the path of a readable file", (f"redis://:{PASSWORD}@h:6379/0",)),
    ("kafka_ca_path", NO_PEM, (PRIVATE_KEY, f"\n{PASSWORD}\n{PASSWORD}")),
    ("kafka_key_path", NO_PEM, (PRIVATE_KEY,)),
    ("redis_ca_path", NO_PEM, (PRIVATE_KEY,)),
)


def test_s17_what_is_wrong_is_named_without_a_secret() -> None:
    for name, expected, values in REFUSED:
        for value in values:
            told = refusal(**{name: value})
            assert told.startswith(f"NEARSTREAM_{name.upper()}: {expected}"), (name, value, told)


def test_a_file_is_refused_by_its_variable_if_it_holds_no_value(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    path = tmp_path / "value"
    for content in (b"", b"\n", b"  \n", b"\t", b"# the key comes here\n#\n", b"\xef\xbb\xbf# one\n\n # two"):
        path.write_bytes(content)
        for name in ("hash_key", "redis", "api_token"):
            told = refusal(**{f"{name}_file": str(path)})
            assert told.startswith(f"NEARSTREAM_{name.upper()}_FILE: {HOLDS_NOTHING}"), content
    path.write_bytes(b"\xff\xfe")
    for given, expected in (
        (str(path), "expected a file in UTF-8"),
        (str(tmp_path / "missing"), "expected the path of a readable file: No such file or directory"),
        (str(tmp_path), "expected the path of a readable file: Is a directory"),
    ):
        assert refusal(hash_key_file=given) == f"NEARSTREAM_HASH_KEY_FILE: {expected}"
    told = refusal(hash_key=KEY, hash_key_file=str(tmp_path / "key"))
    assert told.startswith("NEARSTREAM_HASH_KEY_FILE: NEARSTREAM_HASH_KEY is set too")


def test_s17_a_secret_comes_from_its_file(tmp_path: Path) -> None:
    for ending in ("", "\n", "\r\n", "\n\n"):
        (tmp_path / "key").write_bytes(KEY.encode() + ending.encode())
        assert load({"NEARSTREAM_HASH_KEY_FILE": str(tmp_path / "key")}).hash_key == KEY
        (tmp_path / "slots").write_text(f"16{ending}")
        assert load({"NEARSTREAM_INDEX_SLOTS_FILE": str(tmp_path / "slots")}).index_slots == 16


def test_s09_every_profile_but_development_refuses_to_start_without_a_key() -> None:
    for profile in ("production", "mail"):
        for given in ({}, {"hash_key": ""}):
            assert refusal(profile=profile, **given).startswith("NEARSTREAM_HASH_KEY: ")
        assert load({"NEARSTREAM_PROFILE": profile, "NEARSTREAM_HASH_KEY": KEY}).profile == profile
    assert load({"NEARSTREAM_HASH_KEY": "é" * 16}).hash_key == "é" * 16  # a key is measured in bytes
    assert refusal(scheme="mail") == "NEARSTREAM_HASH_KEY: NEARSTREAM_SCHEME=mail requires a secret key"
    assert load({"NEARSTREAM_SCHEME": "mail", "NEARSTREAM_HASH_KEY": KEY}).profile == "development"


def test_the_mail_profile_keeps_no_bytes_and_has_the_scheme_of_mail_unless_told() -> None:
    mail = {"NEARSTREAM_PROFILE": "mail", "NEARSTREAM_HASH_KEY": KEY}
    assert (load(mail).scheme, load(mail).dead_letter_payload) == ("mail", "hash")
    told = load({**mail, "NEARSTREAM_SCHEME": "compact", "NEARSTREAM_DEAD_LETTER_PAYLOAD": "head"})
    assert (told.scheme, told.dead_letter_payload) == ("compact", "head")


def test_the_table_has_a_row_of_help_for_every_setting() -> None:
    rows = table(Settings())
    assert [row[0] for row in rows] == [PREFIX + name.upper() for name in Settings.__dataclass_fields__]
    assert all(help_text for _, _, _, help_text in rows)
    assert all(value == default for _, value, default, _ in rows)


def test_s17_settings_never_print_a_secret() -> None:
    for address in (
        f"rediss://:{PASSWORD}@h:6379/0",
        f"redis://:{PASSWORD}@more@h:6379/0",
        f"redis://:a@{PASSWORD}@h:6379/0",
        f"redis://h:6379/0?password={PASSWORD}",
    ):
        settings = load({"NEARSTREAM_REDIS": address, "NEARSTREAM_HASH_KEY": KEY})
        assert settings.redis == address
        printed = "\n".join(" ".join(row) for row in table(settings)) + repr(settings)
        assert PASSWORD not in printed
        assert KEY not in printed
        assert "h:6379/0" in shown("redis", address)
