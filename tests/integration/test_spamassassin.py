"""A real SpamAssassin reads the header of the milter by the rule of `deploy/mail/spamassassin-nearstream.cf`."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nearstream.workers.mail.milter import Answer, Contained, Labels, header_value
from tests.devstack.debian import unpacked
from tests.support.mail import campaign_mail

pytestmark = pytest.mark.foreign

RULE = Path(__file__).parent.parent.parent / "deploy/mail/spamassassin-nearstream.cf"
SECONDS = 120.0

SpamAssassin = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def spamassassin(tmp_path_factory: pytest.TempPathFactory) -> SpamAssassin:
    tree, folder = unpacked("spamassassin"), tmp_path_factory.mktemp("spamassassin")
    site, rules = folder / "site", tree.root / "usr/share/spamassassin"
    site.mkdir()
    for plugins in (tree.root / "etc/spamassassin").glob("*.pre"):
        shutil.copy(plugins, site)
    shutil.copy(RULE, site / "nearstream.cf")
    places = [f"--siteconfigpath={site}", f"--configpath={rules}", "--nocreate-prefs", "--local"]
    environment = os.environ | tree.environment() | {"HOME": str(folder)}

    def run(option: str, mail: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [*tree.perl("spamassassin", "-T"), option, *places]
        return subprocess.run(command, input=mail, capture_output=True, timeout=SECONDS, check=False, env=environment)

    return run


def test_the_rule_is_accepted(spamassassin: SpamAssassin) -> None:
    done = spamassassin("--lint")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (header_value(Answer("bulk", 37, 0.941)), {"3.0 NEARSTREAM_BULK"}),
        (header_value(Answer("known_bad", 37, 0.941)), {"6.0 NEARSTREAM_KNOWN_BAD"}),
        (header_value(Answer("near_bad", 3, 0.941, witness="near")), {"2.0 NEARSTREAM_NEAR_BAD"}),
        (header_value(Answer("none", contains=Contained(9, Labels(2)))), {"2.0 NEARSTREAM_CONTAINS_BAD"}),
        (
            header_value(Answer("none", references=(Contained(), Contained(0, Labels(2))))),
            {"3.0 NEARSTREAM_REFERENCE_BAD"},
        ),
        (header_value(Answer("known_good", 0, 0.941)), {"-3.0 NEARSTREAM_KNOWN_GOOD"}),
        (header_value(Answer("near_duplicate", 3, 0.941)), set()),
        (header_value(Answer("none")), set()),
        (b"a verdict=bulk; n=37", set()),
    ],
)
def test_a_scan_finds_the_rule_of_the_verdict_alone(spamassassin: SpamAssassin, value: bytes, found: set[str]) -> None:
    done = spamassassin("--test-mode", b"X-Nearstream: %b\r\n%b" % (value, campaign_mail("anna")))
    report = done.stdout.decode("latin-1").partition("Content analysis details")[2]
    assert "pts rule name" in report
    assert set(re.findall(r"(-?[0-9.]+ NEARSTREAM_\w+) ", report)) == found
