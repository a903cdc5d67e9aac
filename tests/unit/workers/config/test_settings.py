"""Settings from the environment: errors name them, and secrets are never printed."""

from pathlib import Path

import pytest

from nearstream.schemas.verdicts.events import RELATIONS
from nearstream.workers.config.settings import PREFIX, Settings, SettingsError, load, shown, table

KEY = "0123456789abcdef0123456789abcdef"
PASSWORD = "correct-horse"  # noqa: S105 - a made-up one


def refusal(**given: str) -> str:
    """Return the line with which a start with these variables is refused."""
    with pytest.raises(SettingsError) as caught:
        load({PREFIX + name.upper(): value for name, value in given.items()})
    text = str(caught.value)
    assert "\n" not in text
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


def test_a_setting_that_ended_is_answered_with_what_holds_now(tmp_path: Path) -> None:
    ended = "NEARSTREAM_BANDS: no such setting any more: the preset in NEARSTREAM_SCHEME sets it"
    assert refusal(bands="16") == ended
    assert refusal(redis_cluster="yes").endswith("write redis+cluster:// or rediss+cluster:// in NEARSTREAM_REDIS")


@pytest.mark.parametrize(
    ("former", "now"), [("standard", "fine"), ("dense", "fine"), ("letters", "fine"), ("bands-only", "compact")]
)
def test_a_preset_that_ended_is_answered_with_the_one_to_take(former: str, now: str) -> None:
    (_, _, names) = refusal(scheme=former).partition(": expected ")
    assert former in names.partition(now)[2].partition(")")[0]


@pytest.mark.parametrize("name", ["kafak", "", "file", "_file", "hash_key_path", "hash_key_file_file"])
def test_an_unknown_variable_is_named(name: str, tmp_path: Path) -> None:
    readable = tmp_path / "value"
    readable.write_text("x")
    assert refusal(**{name: str(readable)}).startswith(f"NEARSTREAM_{name.upper()}: no such setting")


@pytest.mark.parametrize(
    ("name", "meant"), [("kafak", "KAFKA"), ("REDIS_URL", "REDIS"), ("topics_prefix", "TOPIC_PREFIX")]
)
def test_an_unknown_variable_is_met_with_the_one_that_was_meant(name: str, meant: str) -> None:
    assert refusal(**{name: "x"}) == f"NEARSTREAM_{name.upper()}: no such setting, is it NEARSTREAM_{meant}?"
    assert refusal(xyzzy="x") == "NEARSTREAM_XYZZY: no such setting, `env -i nearstream settings` lists all"


@pytest.mark.parametrize("content", ["", "\n", "  \n", "\t", "# the key comes here\n#\n", "\ufeff# one\n\n # two"])
@pytest.mark.parametrize("name", ["hash_key", "redis"])
def test_a_file_that_holds_nothing_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / "value").write_text(content)
    expected = f"NEARSTREAM_{name.upper()}_FILE: expected a file that holds a value"
    assert refusal(**{f"{name}_file": str(tmp_path / "value")}).startswith(expected)


def test_a_file_of_comments_alone_gives_no_tokens(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("# mail: to be made\n\n# pages: to be made\n")
    text = refusal(api="0.0.0.0:9465", api_token_file=str(tmp_path / "tokens"))
    assert text == "NEARSTREAM_API_TOKEN_FILE: expected a file that holds a value, found none, or comments alone"


@pytest.mark.parametrize("token", ["one-token-of-two\none-more-of-these", "ünicode-token-of-mail"])
def test_a_token_that_no_request_can_send_is_refused(token: str) -> None:
    assert refusal(status_token=token) == "NEARSTREAM_STATUS_TOKEN: expected a token in ASCII without blanks"


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\n\n"])
def test_s17_a_secret_comes_from_its_file(tmp_path: Path, ending: str) -> None:
    secret = tmp_path / "key"
    secret.write_bytes(KEY.encode() + ending.encode())
    assert load({"NEARSTREAM_HASH_KEY_FILE": str(secret)}).hash_key == KEY
    (tmp_path / "slots").write_text(f"16{ending}")
    assert load({"NEARSTREAM_INDEX_SLOTS_FILE": str(tmp_path / "slots")}).index_slots == 16


def test_a_variable_set_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    text = refusal(hash_key=KEY, hash_key_file=str(tmp_path / "key"))
    assert text.startswith("NEARSTREAM_HASH_KEY_FILE: NEARSTREAM_HASH_KEY is set too")
    assert KEY not in text


def test_a_file_that_cannot_be_read_is_named_by_its_variable(tmp_path: Path) -> None:
    expected = "NEARSTREAM_HASH_KEY_FILE: expected the path of a readable file: "
    assert refusal(hash_key_file=str(tmp_path / "missing")) == f"{expected}No such file or directory"
    assert refusal(hash_key_file=str(tmp_path)) == f"{expected}Is a directory"
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert refusal(hash_key_file=str(tmp_path / "binary")) == "NEARSTREAM_HASH_KEY_FILE: expected a file in UTF-8"


@pytest.mark.parametrize("name", ["hash_key", "redis", "kafka_password", "kafka_key_password", "status_token"])
def test_s17_a_secret_in_place_of_the_path_of_its_file_is_not_quoted(name: str) -> None:
    assert PASSWORD not in refusal(**{f"{name}_file": f"redis://:{PASSWORD}@h:6379/0"})


@pytest.mark.parametrize("name", ["kafka_ca_path", "kafka_cert_path", "kafka_key_path", "redis_ca_path"])
def test_s17_a_key_in_place_of_its_path_is_refused_and_not_quoted(name: str) -> None:
    for content in (f"-----BEGIN PRIVATE KEY-----\n{PASSWORD}\n", f"\n{PASSWORD}\n{PASSWORD}"):
        text = refusal(**{name: content})
        assert text == f"NEARSTREAM_{name.upper()}: expected the path of a PEM file, not its content"


@pytest.mark.parametrize("name", ["hash_key", "kafka_password", "kafka_username", "redis"])
def test_bytes_that_are_not_utf8_are_refused(name: str) -> None:
    assert refusal(**{name: f"redis://:{KEY}\udcff@h:6379/0"}) == f"NEARSTREAM_{name.upper()}: expected UTF-8"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("index_slots", "", "expected a whole number, got ''"),
        ("index_slots", "2.5", "expected a whole number, got '2.5'"),
        ("api_seconds", "0,8", "expected a number, got '0,8'"),
    ],
)
def test_what_is_no_number_is_named_with_its_value(name: str, value: str, expected: str) -> None:
    assert refusal(**{name: value}) == f"NEARSTREAM_{name.upper()}: {expected}"


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("dead_letter_max_ratio", "nan", "inf"),
        ("index_documents", "999", "10000000001"),
        ("max_text_bytes", "0", "4194305"),
    ],
)
def test_a_number_out_of_its_bounds_is_named_with_them(name: str, low: str, high: str) -> None:
    for value in (low, high):
        text = refusal(**{name: value})
        assert text.startswith(f"NEARSTREAM_{name.upper()}: expected ")
        assert text.endswith(f", got {value}")


@pytest.mark.parametrize(
    ("name", "value"),
    [("index_slots", "256"), ("outage_seconds", "0"), ("retention_seconds", "0")],
)
def test_a_number_at_its_bound_is_accepted(name: str, value: str) -> None:
    assert getattr(load({PREFIX + name.upper(): value}), name) == int(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("profile", "prod"),
        ("kafka", "localhost"),
        ("kafka", "a:9092,"),
        ("kafka", "kafka://a:9092"),
        ("kafka", f"us:{PASSWORD}@a:9092"),
        ("kafka", f"a:9092,{PASSWORD}@b:9092"),
        ("status", f"{PASSWORD}@a:9464"),
        ("kafka", "a:9092,b\u202e:9092"),
        ("kafka", f"{'a' * 64}.example:9092"),
        ("kafka", "a..b:9092"),
        ("redis", f"redis://us:{PASSWORD}@b\u202e:6379/0"),
        ("redis", "localhost:6379"),
        ("redis", "http://localhost"),
        ("group", "a b"),
        ("namespace", "a{b}"),
        ("namespace", "a" * 33),
        ("topic_prefix", "a/"),
        ("scheme", "best"),
        ("dead_letter_payload", "none"),
    ],
)
def test_a_text_outside_its_pattern_is_named(name: str, value: str) -> None:
    text = refusal(**{name: value})
    assert text.startswith(f"NEARSTREAM_{name.upper()}: ")
    assert PASSWORD not in text


def test_an_unknown_relation_is_named() -> None:
    assert refusal(relations="version overlaps").endswith("got 'overlaps'")
    assert load({"NEARSTREAM_RELATIONS": " ".join(RELATIONS)}).relations.split() == list(RELATIONS)


@pytest.mark.parametrize("value", ["", "  ", "none"])
def test_a_deployment_without_relations_is_refused(value: str) -> None:
    """It would keep an index but send no event.

    An empty variable is more likely a mistake.
    """
    assert refusal(relations=value).startswith("NEARSTREAM_RELATIONS: expected some of exact_duplicate, ")


@pytest.mark.parametrize("value", ["", "unique", "All", "all related"])
def test_an_unknown_choice_of_verdicts_is_refused(value: str) -> None:
    assert refusal(verdicts=value) == "NEARSTREAM_VERDICTS: expected all, related or none"


@pytest.mark.parametrize("profile", ["production", "mail"])
def test_s09_every_profile_but_development_refuses_to_start_without_a_key(profile: str) -> None:
    assert refusal(profile=profile).startswith("NEARSTREAM_HASH_KEY: ")
    assert refusal(profile=profile, hash_key="").startswith("NEARSTREAM_HASH_KEY: ")
    assert load({"NEARSTREAM_PROFILE": profile, "NEARSTREAM_HASH_KEY": KEY}).profile == profile


def test_a_key_is_measured_in_bytes_and_not_quoted() -> None:
    assert refusal(hash_key=KEY[:31]) == "NEARSTREAM_HASH_KEY: expected at least 32 bytes"
    assert load({"NEARSTREAM_HASH_KEY": "é" * 16}).hash_key == "é" * 16
    assert load({"NEARSTREAM_PROFILE": "development"}).hash_key == ""


def test_the_mail_profile_keeps_no_bytes_and_has_the_scheme_of_mail_unless_told() -> None:
    mail = {"NEARSTREAM_PROFILE": "mail", "NEARSTREAM_HASH_KEY": KEY}
    assert load(mail).scheme == "mail"
    assert load({**mail, "NEARSTREAM_SCHEME": "compact"}).scheme == "compact"
    assert load(mail).dead_letter_payload == "hash"
    assert load({**mail, "NEARSTREAM_DEAD_LETTER_PAYLOAD": "head"}).dead_letter_payload == "head"
    assert load({**mail, "NEARSTREAM_PROFILE": "production"}).dead_letter_payload == "full"


def test_the_scheme_of_mail_is_refused_without_a_key() -> None:
    assert refusal(scheme="mail") == "NEARSTREAM_HASH_KEY: NEARSTREAM_SCHEME=mail requires a secret key"
    assert load({"NEARSTREAM_SCHEME": "mail", "NEARSTREAM_HASH_KEY": KEY}).profile == "development"


def test_the_table_has_a_row_of_help_for_every_setting() -> None:
    rows = table(Settings())
    assert [row[0] for row in rows] == [PREFIX + name.upper() for name in Settings.__dataclass_fields__]
    assert all(help_text for _, _, _, help_text in rows)
    assert all(value == default for _, value, default, _ in rows)


@pytest.mark.parametrize(
    "address",
    [
        f"rediss://:{PASSWORD}@h:6379/0",
        f"redis://:{PASSWORD}@more@h:6379/0",
        f"redis://:a@{PASSWORD}@h:6379/0",
        f"redis://h:6379/0?password={PASSWORD}",
    ],
)
def test_s17_settings_never_print_a_secret(address: str) -> None:
    settings = load({"NEARSTREAM_REDIS": address, "NEARSTREAM_HASH_KEY": KEY})
    assert settings.redis == address
    printed = "\n".join(" ".join(row) for row in table(settings))
    assert PASSWORD not in printed
    assert KEY not in printed
    assert PASSWORD not in repr(settings)
    assert KEY not in repr(settings)
    assert "h:6379/0" in shown("redis", address)


@pytest.mark.parametrize(
    "redis",
    [
        f"redis:/{PASSWORD}",
        f"http://:{PASSWORD}@h",
        f"redis://:{PASSWORD} @h",
        # Here the host would begin in the middle of the password.
        *(f"redis://:{PASSWORD}{sign}a@h:6379/0" for sign in "/?#[]"),
        f"redis://h:6379/0?password=a#{PASSWORD}",
        # Unicode maps these characters to # and a/c, and the error of Python's parser quotes the password.
        f"redis://us:{PASSWORD}\uff03@h:6379/0",
        f"redis://us:{PASSWORD}@h\u2100:6379/0",
    ],
)
def test_s17_an_error_never_quotes_a_secret(redis: str) -> None:
    assert PASSWORD not in refusal(redis=redis)
