"""The units for systemd are valid, and what they start works together with the settings as they are."""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from nearstream.workers.config.settings import load
from tests.devstack.server import free_ports
from tests.support.deployment import deployed
from tests.support.mail import command, log_says

pytestmark = pytest.mark.foreign

DEPLOY = Path(__file__).parents[2] / "deploy"
# What the page has systemd start, and what each says when it runs.
SAYS = {
    "nearstream@all": "role all",
    "nearstream@alert": "role alert",
    "nearstream-serve": "API: http://",
    "nearstream-milter": "milter: 127.0.0.1:",
}
KEY = "k" * 32


def _fields(unit: str) -> dict[str, list[str]]:
    """Return the values of each field of a unit, which may be the instance of a template."""
    template, at, instance = unit.partition("@")
    text = (DEPLOY / f"systemd/{template}{at}.service").read_text().replace("%i", instance)
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def _arguments(unit: str) -> list[str]:
    program, *arguments = _fields(unit)["ExecStart"][0].split()
    assert program == "/opt/nearstream/bin/nearstream"
    return arguments


def _settings(unit: str) -> dict[str, str]:
    """Return the settings that a unit gives, in small letters, with those of the file for mail."""
    lines = list(_fields(unit).get("Environment", []))
    for name in _fields(unit).get("EnvironmentFile", []):
        file = DEPLOY / "mail" / Path(name.removeprefix("-")).name
        lines += file.read_text().splitlines() if file.exists() or not name.startswith("-") else []
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {name.removeprefix("NEARSTREAM_").lower(): value for name, value in given.items()}


def test_the_page_names_the_units_and_only_the_filter_has_no_key() -> None:
    page = (DEPLOY.parent / "docs/mail.md").read_text()
    assert f"systemctl enable --now {' '.join(SAYS)}\n" in page
    for unit in SAYS:
        has_key = "hash_key_file" in _settings(unit)
        assert has_key is (unit != "nearstream-milter")
        load(
            {f"NEARSTREAM_{name.upper()}": value for name, value in _settings(unit).items() if name != "hash_key_file"}
            | ({"NEARSTREAM_HASH_KEY": KEY} if has_key else {})
        )


@pytest.mark.timeout(240)
async def test_what_the_units_start_works_together(kafka: str, redis_url: str, tmp_path: Path) -> None:
    api_port, milter_port = free_ports(2)
    key = tmp_path / "hash-key"
    key.write_text(KEY)
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        # Servers and ports of this machine in place of those of the page, and names of this test.
        own = {
            "kafka": kafka,
            "redis": redis_url,
            "namespace": deployment.settings.namespace,
            "topic_prefix": deployment.settings.topic_prefix,
            "group": deployment.settings.group,
        }
        with ExitStack() as running:
            for unit in SAYS:
                name = unit.removeprefix("nearstream").strip("-@")
                settings = _settings(unit)
                if "hash_key_file" in settings:
                    settings |= {**own, "hash_key_file": str(key)}
                listen = ["--listen", f"127.0.0.1:{milter_port}"] if name == "milter" else []
                log = tmp_path / f"{name}.log"
                arguments = [*_arguments(unit), *listen]
                running.enter_context(command(log, *arguments, **settings, api=f"127.0.0.1:{api_port}"))
            for unit, text in SAYS.items():
                log = await log_says(tmp_path / f"{unit.removeprefix('nearstream').strip('-@')}.log", text, 120)
                assert "cannot listen" not in log
