"""Tests of the choice between a program of the machine and one of a wheel."""

from pathlib import Path

import pytest

from tests.devstack.wheels import on_path


@pytest.mark.parametrize(
    ("printed", "is_taken"),
    [("v20.19.0", True), ("v24.1.0", True), ("v18.20.4", False), ("tool version tool20.20 linux", True), ("", False)],
)
def test_a_program_that_is_too_old_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, is_taken: bool
) -> None:
    program = tmp_path / "tool"
    program.write_text(f"#!/bin/sh\necho '{printed}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert on_path("tool", "--version", (20, 19)) == (str(program) if is_taken else None)


def test_a_program_that_is_missing_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert on_path("tool", "--version", (20, 19)) is None
