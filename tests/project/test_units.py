"""The units of systemd for processes without containers are valid, and their commands exist."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from nearstream.workers.cli.parser import create_parser
from nearstream.workers.cli.servers import ROLES
from nearstream.workers.config.settings import load
from tests.devstack.debian import unpacked

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("nearstream*.*"))
INSTALLED = "/opt/nearstream/bin/nearstream"
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]


def verified(units: Iterable[Path], folder: Path) -> tuple[int, str, str]:
    """Return exit code and output of `systemd-analyze verify` over copies of units that name our command.

    Of a template, the instance `all` is judged.
    """
    tree = unpacked("systemd")
    program = folder / "nearstream"
    program.symlink_to(Path(sys.executable).parent / "nearstream")
    copies = []
    for unit in units:
        (folder / unit.name).write_text(unit.read_text().replace(INSTALLED, str(program)))
        copies.append(folder / unit.name.replace("@.", "@all."))
    # The units that ours name are those of the tree.
    known = f"{folder}:{tree.root / 'usr/lib/systemd/system'}:{tree.root / 'lib/systemd/system'}"
    done = subprocess.run(
        [tree.program("systemd-analyze"), "verify", "--man=no", "--recursive-errors=one", *copies],
        env=os.environ | tree.environment(*tree.private_libraries) | {"SYSTEMD_UNIT_PATH": known},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.foreign
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    units = [unit for unit in UNITS if unit.suffix in (".service", ".timer")]
    assert verified(units, tmp_path) == (0, "", "")


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_that_there_is(unit: Path) -> None:
    ((program, line),) = re.findall(r"^ExecStart=(\S+) (.*)$", unit.read_text(), re.MULTILINE)
    assert program == INSTALLED
    for role in ROLES if "%i" in line else ("",):
        create_parser().parse_args(line.replace("%i", role).split())


def test_a_timer_has_its_service_and_the_settings_can_be_loaded() -> None:
    timers = {unit.stem for unit in UNITS if unit.suffix == ".timer"}
    assert timers == {"nearstream-audit", "nearstream-doctor"}
    assert timers <= {unit.stem for unit in SERVICES}
    for profile, path in (("production", DEPLOY / "systemd/nearstream.env"), ("mail", DEPLOY / "mail/nearstream.env")):
        given = dict(line.split("=", 1) for line in path.read_text().splitlines() if not line.startswith("#"))
        assert load(given | {"NEARSTREAM_HASH_KEY": "k" * 32}).profile == profile


def test_the_page_about_mail_starts_units_that_there_are_and_only_the_filter_has_no_key() -> None:
    page = (DEPLOY.parent / "docs/mail.md").read_text()
    (names,) = re.findall(r"^systemctl enable --now (.*)$", page, re.MULTILINE)
    without_key = []
    for name in names.split():
        template, at, _ = name.partition("@")
        unit = (DEPLOY / f"systemd/{template}{at}.service").read_text()
        without_key += [name] if "NEARSTREAM_HASH_KEY_FILE=%d/hash-key" not in unit else []
    assert without_key == ["nearstream-milter"]
