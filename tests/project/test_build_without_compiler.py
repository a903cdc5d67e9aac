"""The C extension is built on any machine, with its own compiler or with one from the package registry."""

import os
import re
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.distributions import ROOT, build, copy_sources, run

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(1800)]  # all dependencies are installed first

LIBRARY = "nearstream/streams/native/_native.abi3.so"
COMPILER = re.compile(r".*(cc|[cg]\+\+|clang)(-[\d.]+)?|[ct]cc|c[89]9|.*cpp.*|(.*-)?(ld|as)(\..*)?")
SIGN = """
from datetime import UTC, datetime
from nearstream import Document, HashKey, Signer, preset
from nearstream.schemas.topics.codec import encode_signature
key = HashKey.public()
text = "語 e\\u0323\\u0301t " * 50 + "word " * 400
document = Document(id="x", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
print(encode_signature(Signer(preset("fine", key), key).sign(document)).hex())
"""
WITHOUT_HEADERS = """
import sys, sysconfig
sysconfig.get_path = lambda name: "/nowhere"
sys.path.insert(0, "build_backend")
import compiled
sys.stderr = sys.stdout
compiled.build_wheel(sys.argv[1])
"""


def sign(wheel: Path, folder: Path) -> str:
    """Return a signature from an unpacked wheel."""
    with zipfile.ZipFile(wheel) as opened:
        assert [name for name in opened.namelist() if name.endswith((".so", ".c", ".h", ".o"))] == [LIBRARY]
        opened.extractall(folder)
    return run([sys.executable, "-P", "-c", SIGN], folder, PYTHONPATH=str(folder))


def test_a_wheel_signs_without_vector_instructions_as_with_them(wheel: Path, tmp_path: Path) -> None:
    sources = copy_sources(tmp_path / "sources")
    plain = build("build_wheel", sources, tmp_path / "plain", CFLAGS="-Wall -Wextra -Werror -DNEARSTREAM_PLAIN")
    assert "-cp311-abi3-" in plain.name
    assert sign(plain, tmp_path / "1") == sign(wheel, tmp_path / "2")


def test_the_demo_runs_from_a_bare_clone_where_every_compiler_is_hidden(tmp_path: Path) -> None:
    programs, clone = tmp_path / "programs", tmp_path / "clone"
    programs.mkdir()
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in folder.iterdir() if folder.is_dir() else ():
            if not COMPILER.fullmatch(program.name) and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    run(["git", "clone", "--quiet", str(ROOT), str(clone)], tmp_path)
    python = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    told = run(["env", "-u", "CC", "make", "demo", f"PYTHON={python}"], clone, within_seconds=1500, PATH=str(programs))
    assert (clone / "src" / LIBRARY).exists()
    assert "exact_duplicate" in told


def test_missing_headers_are_told_with_the_name_of_their_package(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", WITHOUT_HEADERS, str(tmp_path)], ROOT, exit_code=1)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert done.splitlines() == [
        f"/nowhere/Python.h is missing: install python{version}-dev (Debian, Ubuntu) or python{version}-devel"
        " (Fedora), or install a wheel, which needs no headers"
    ]
