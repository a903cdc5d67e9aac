"""What a wheel of the project holds."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"schemas", "streams", "workers"}
DATA = {"schemas/py.typed", "streams/py.typed", "workers/index.lua", "workers/local_kafka.pom.xml", "workers/py.typed"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """A wheel, built without network from a copy: a build leaves folders beside the sources."""
    pytest.importorskip("setuptools", minversion="77", reason="a build without network needs setuptools 77 or newer")
    pytest.importorskip("pip", reason="a build needs pip")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    options = ["--disable-pip-version-check", "--wheel-dir", str(target), str(source)]
    done = subprocess.run([*build, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = target.iterdir()
    with zipfile.ZipFile(file) as opened:
        yield opened


def test_a_wheel_adds_three_names_and_no_other(wheel: zipfile.ZipFile) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert {name.split("/")[0] for name in wheel.namelist()} == {*PACKAGES, f"nearstream-{version}.dist-info"}


def test_a_wheel_holds_what_the_packages_read(wheel: zipfile.ZipFile) -> None:
    assert set(wheel.namelist()) >= DATA


def test_a_wheel_holds_every_module_of_the_packages(wheel: zipfile.ZipFile) -> None:
    modules = {path.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    packed = {name for name in wheel.namelist() if name.endswith(".py")}
    assert modules == packed


def test_a_wheel_holds_the_license_and_the_command(wheel: zipfile.ZipFile) -> None:
    (licence,) = (name for name in wheel.namelist() if name.endswith("licenses/LICENSE"))
    assert "Apache License" in wheel.read(licence).decode()
    (entries,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "nearstream = workers.__main__:main" in wheel.read(entries).decode()
