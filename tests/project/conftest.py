"""Distributions and installations of the project, each made once for all tests."""

import shutil
from pathlib import Path

import pytest

from tests.support.distributions import build, copy_sources, install, install_bare, make_once


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source distribution."""

    def make(folder: Path) -> Path:
        sources = copy_sources(folder / "sources")
        # An editable installation leaves the compiled part there, but a source distribution must not contain it.
        (sources / "src/nearstream/streams/native/_native.abi3.so").write_bytes(b"")
        return build("build_sdist", sources, folder / "made")

    return make_once(tmp_path_factory, "sdist", make)


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that is built from the source distribution. Warnings of the compiler are errors."""

    def make(folder: Path) -> Path:
        shutil.unpack_archive(sdist, folder / "unpacked")
        (sources,) = (folder / "unpacked").iterdir()
        return build("build_wheel", sources, folder / "made", CFLAGS="-Wall -Wextra -Werror")

    return make_once(tmp_path_factory, "wheel", make)


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `bin` folder of a new virtual environment with the wheel."""
    return make_once(tmp_path_factory, "installed", lambda folder: install(wheel, folder))


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `bin` folder of a new virtual environment with the wheel and its dependencies alone."""
    return make_once(tmp_path_factory, "bare", lambda folder: install_bare(wheel, folder))


@pytest.fixture(scope="session")
def installed_editable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `bin` folder of a new environment with an editable installation."""

    def make(folder: Path) -> Path:
        wheel = build("build_editable", copy_sources(folder / "sources"), folder / "made")
        return install(wheel, folder / "environment")

    return make_once(tmp_path_factory, "installed-editable", make)
