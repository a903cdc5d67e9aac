"""A compiled part that cannot be used is reported with the remedy."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nearstream.workers.config.settings import load
from nearstream.workers.operations import doctor_checks
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.worker import composition as worker

ROOT = Path(__file__).parents[4]
TELL = """
import sys
sys.meta_path = [each for each in sys.meta_path if "editable" not in str(each)]  # this checkout may be installed
from nearstream.streams.signing.signer import DEFAULT_IMPLEMENTATION
from nearstream.streams.native import FAULT
print(DEFAULT_IMPLEMENTATION, FAULT)
"""


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "_native.py",
            "def sign() -> None: ...",
            "numpy nearstream.streams.native._native was built from other sources",
        ),
        (
            "_native.py",
            "context = pack_pairs = sign = sign_with_form = unicode = unpack_text = None",  # it could not compare yet
            "numpy nearstream.streams.native._native was built from other sources",
        ),
        ("_native.abi3.so", "no library", "numpy "),
        ("other.py", "", "numpy"),
    ],
)
def test_numpy_serves_and_says_why(name: str, content: str, told: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (tmp_path / "src/nearstream/streams/native" / name).write_text(content)
    done = subprocess.run(
        [sys.executable, "-P", "-c", TELL],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
    )
    assert done.stdout.startswith(told)
    assert (len(done.stdout.split()) > 1) == (name != "other.py")


def test_no_other_module_asks_whether_c_is_installed() -> None:
    sources = (ROOT / "src").rglob("*.py")
    assert [path.parent.name for path in sources if "INSTALLED" in path.read_text("utf-8")] == ["native"]


def test_doctor_and_the_log_of_a_worker_warn(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(doctor_checks, "NATIVE_FAULT", "built from other sources")
    check = doctor_checks.signer("numpy")
    assert (check.grade, check.subject) == (doctor_checks.Grade.WARN, "signer")
    assert "pip install -e ." in check.detail
    with caplog.at_level(logging.WARNING):
        worker._log_start(Deployment.of(load({})), "sign")
    assert check.detail in caplog.messages


def test_where_nothing_is_wrong_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_checks, "NATIVE_FAULT", "")
    assert doctor_checks.signer("numpy").grade is doctor_checks.Grade.OK
