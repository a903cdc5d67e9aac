"""The existing commands, and the modules that are loaded before one of them runs."""

import argparse
import inspect
import re
import subprocess
import sys
from collections import Counter

import pytest

from nearstream.workers.cli.arguments import since
from nearstream.workers.cli.main import main
from nearstream.workers.cli.parser import COMMANDS as TABLE
from nearstream.workers.cli.parser import GROUPS, create_parser
from tests.support.commands import COMMANDS, PARSERS

HEAVY = {"numpy", "faust", "mode", "aiokafka", "redis"}
REPORT = """
import sys
from nearstream.workers.cli.arguments import since
from nearstream.workers.cli.main import main

for arguments in sys.argv[1:]:
    try:
        main(arguments.split())
    except SystemExit:
        pass
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def test_the_help_has_every_command_once_under_who_needs_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert Counter(name for names in GROUPS.values() for name in names) == Counter({path[0] for path in COMMANDS})
    for title, names in GROUPS.items():
        rows = shown.partition(f"  {title}:\n")[2]
        assert re.findall(r"^    ([a-z-]+)\b", rows, re.MULTILINE)[: len(names)] == list(names)


def test_every_command_has_help_and_an_example_that_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for path, function in COMMANDS.items():
        with pytest.raises(SystemExit) as ended:
            main([*path, "--help"])
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        assert f"nearstream {' '.join(path)} " in shown
        kinds = ("JSON", "texts", "HTML", ".eml", "mbox", "Maildir", "WARC", "WET", "folders", "gzip", "zstd")
        assert path != ("scan",) or all(kind in shown for kind in kinds)
        if function is None:
            continue
        example = " ".join(shown.rpartition("example: ")[2].split())
        command = re.sub(r'^(?:\w+=\S+ )*|eval "\$\(|\)"$', "", example).split()
        assert command[0] == "nearstream"
        assert create_parser().parse_args(command[1:]).command == function
        assert list(inspect.signature(function).parameters) == ["settings", "options"]
        assert function.__module__ == f"nearstream.workers.cli.{TABLE[path[0]][0].partition(':')[0]}"


def test_few_commands_are_to_be_learned() -> None:
    assert len([path for path, function in COMMANDS.items() if function]) <= 32


def test_every_number_is_checked_by_the_parser() -> None:
    numbers = [
        (parser, action)
        for parser in PARSERS.values()
        for action in parser._actions
        if isinstance(action.default, int | float) or action.metavar in ("N", "S", "PARTITION", "OFFSET")
        if action.type is not since
        if action.nargs is None
    ]
    assert len(numbers) > 20
    for parser, action in numbers:
        assert parser._get_value(action, "1") == 1
        for text in ("abc", "", "nan", "inf", "-inf", "-1", "1e999", "9" * 30, "1;2", "½"):
            with pytest.raises(argparse.ArgumentError, match=r"number .* expected"):
                parser._get_value(action, text)


def test_nothing_heavy_is_loaded_before_a_command_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    helps = [f"{' '.join(path)} --help" for path in COMMANDS]
    short = ["--version", "", "--help", "settings --json", "worker sing", "shwo", "label"]
    for wrong, arguments in (("", [*short, *helps]), ("x", ["worker"])):
        if wrong:
            monkeypatch.setenv("NEARSTREAM_INDEX_SLOTS", wrong)
        done = subprocess.run([sys.executable, "-c", REPORT, *arguments], capture_output=True, text=True, check=True)
        *told, modules = done.stderr.splitlines()
        assert "nearstream" in modules.split()
        assert not HEAVY & set(modules.split())
        assert ("NEARSTREAM_INDEX_SLOTS" in "".join(told)) == bool(wrong)
