"""The units of systemd for processes without containers are valid, and their commands exist."""

import re
from pathlib import Path

import pytest

from nearstream.workers.cli.parser import create_parser
from nearstream.workers.cli.servers import ROLES
from nearstream.workers.config.settings import load
from tests.support.units import INSTALLED, verified

UNITS = sorted((Path(__file__).parents[2] / "deploy/systemd").glob("nearstream*.*"))
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]


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
    (settings,) = [unit for unit in UNITS if unit.suffix == ".env"]
    given = dict(line.split("=", 1) for line in settings.read_text().splitlines() if not line.startswith("#"))
    assert load(given | {"NEARSTREAM_HASH_KEY": "k" * 32}).profile == "production"
