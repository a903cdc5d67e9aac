"""The file of alert rules is read whole, or refused in one line."""

from pathlib import Path

import pytest

from nearstream.streams.alerting.counting import Rule
from nearstream.workers.config.alert_rules import DEFAULT_RULES, load_alerts
from nearstream.workers.config.settings import SettingsError

STORM = "[duplicate_storm]\nlimit = 200\nwindow_seconds = 600\n"


def written(folder: Path, text: str) -> str:
    path = folder / "alerts.toml"
    path.write_text(text)
    return str(path)


def test_only_the_alerts_of_the_file_are_on_and_without_one_the_default_rules(tmp_path: Path) -> None:
    assert load_alerts("").rules == DEFAULT_RULES
    text = STORM + 'collections = ["news", "mail"]\n[dead_letters]\nlimit = 5\nwindow_seconds = 60\n'
    assert load_alerts(written(tmp_path, text)).rules == (
        Rule("duplicate_storm", 200, 600, frozenset({"news", "mail"})),
        Rule("dead_letters", 5, 60),
    )


WRONG_RULES = (
    ("", "expected tables duplicate_storm, new_family_of_size, new_family_on_sites, .* or webhook, got none"),
    ("[label_flood]\nlimit = 5\nwindow_seconds = 60\n", r"\[label_flood\]: window_seconds: expected 3600"),
    ("[storm]\nlimit = 5\n", "expected tables .*, got 'storm'"),
    ("duplicate_storm = 5\n", r"\[duplicate_storm\]: Expected `object`, got `int`"),
    ("[duplicate_storm]\nlimit = 5\n", r"\[duplicate_storm\]: .*window_seconds"),
    (STORM + "limits = 3\n", r"\[duplicate_storm\]: .*limits"),
    (STORM.replace("200", "1"), r"\[duplicate_storm\]: Expected `int` >= 2 - at `.limit`"),
    (STORM + 'collections = ["No"]\n', r"\[duplicate_storm\]: Expected `str` of a collection"),
    ("[dead_letters]\nlimit = 5\nwindow_seconds = 60\ncollections = ['a']\n", "dead letters have none"),
    ("[duplicate_storm\n", "expected TOML"),
    (f'public_url = "live.example"\n{STORM}', r"public_url: expected http\(s\)://host"),
)
HOOK = '[[webhook]]\nname = "ops"\nform = "slack"\nurl = "https://hooks.example/secret"\n'
WRONG_TARGETS = (
    (HOOK.replace("https", "ftp"), "ops: expected an address https://"),
    (HOOK.replace("https://", "https://user:word@"), "ops: expected an address https://"),
    (HOOK.replace("hooks.example", "hooks.example:port"), "ops: expected an address https://"),
    (HOOK.replace("hooks.example/", "hooks.example/ "), "ops: expected an address https://"),
    (HOOK.replace('"slack"', '"mail"'), "form"),
    (HOOK.replace('"ops"', '"No"'), "Expected `str` of a name"),
    (HOOK + HOOK, "each with a name of its own"),
    (HOOK + 'url_path = "/nowhere"\n', "ops: url_path: expected a readable file"),
    ('webhook = "x"\n', "webhook"),
)


def test_a_wrong_file_is_refused_in_one_line_that_names_it_and_no_address(tmp_path: Path) -> None:
    for text, expected in (*WRONG_RULES, *WRONG_TARGETS):
        with pytest.raises(SettingsError, match=expected) as refused:
            load_alerts(written(tmp_path, text))
        assert str(refused.value).startswith(f"NEARSTREAM_ALERTS: {tmp_path}/alerts.toml: ")
        assert "\n" not in str(refused.value)
        assert "hooks.example" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"NEARSTREAM_ALERTS: .*expected a readable file: No such file"):
        load_alerts(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b"# \xff")
    with pytest.raises(SettingsError, match="expected UTF-8"):
        load_alerts(str(tmp_path / "latin.toml"))


def test_a_target_is_read_with_its_address_from_a_file_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("http://hooks.example/secret\n")
    found = load_alerts(
        written(tmp_path, HOOK.replace('url = "https://hooks.example/secret"', f'url_path = "{tmp_path}/url"'))
    )
    (target,) = found.targets
    assert target.url == "http://hooks.example/secret"
    assert "hooks.example" not in repr(target)
    assert found.rules == DEFAULT_RULES


def test_the_address_of_the_live_page_stands_above_the_tables(tmp_path: Path) -> None:
    alone = load_alerts(written(tmp_path, 'public_url = "https://live.example/a"\n'))
    assert (alone.public_url, alone.rules) == ("https://live.example/a", DEFAULT_RULES)
