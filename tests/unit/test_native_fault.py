"""A compiled part that is there but cannot be used is told, with the remedy."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workers import assembly, doctor, run
from workers.settings import load

ROOT = Path(__file__).parents[2]
TELL = """
import sys
sys.meta_path = [each for each in sys.meta_path if "editable" not in str(each)]  # this checkout may be installed
from streams.signer import DEFAULT_IMPLEMENTATION, NATIVE_FAULT
print(DEFAULT_IMPLEMENTATION, NATIVE_FAULT)
"""


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("_native.py", "def sign() -> None: ...", "numpy streams._native was built from other sources"),
        (
            "_native.py",
            "context = pack_pairs = sign = sign_with_form = unicode = unpack_pairs = None",  # before it compared
            "numpy streams._native was built from other sources",
        ),
        ("_native.abi3.so", "no library", "numpy "),
        ("other.py", "", "numpy"),
    ],
)
def test_numpy_serves_and_says_why(name: str, content: str, told: str, tmp_path: Path) -> None:
    for package in ("schemas", "streams"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (tmp_path / "streams" / name).write_text(content)
    done = subprocess.run(
        [sys.executable, "-P", "-c", TELL],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout.startswith(told)
    assert (len(done.stdout.split()) > 1) == (name != "other.py")


def test_doctor_and_the_log_of_a_worker_warn(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(assembly, "NATIVE_FAULT", "built from other sources")
    check = doctor._signer("numpy")
    assert (check.grade, check.subject) == (doctor.Grade.WARN, "signer")
    assert "pip install -e ." in check.detail
    with caplog.at_level(logging.WARNING):
        run._log_start(load({}), "sign")
    assert check.detail in caplog.messages


def test_where_nothing_is_wrong_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "NATIVE_FAULT", "")
    assert assembly.native_fault() == ""
    assert doctor._signer("numpy").grade is doctor.Grade.OK
