"""A wheel signs with a compiler or without, the same bytes."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SIGN = """
import sys
sys.meta_path = [each for each in sys.meta_path if "editable" not in str(each)]  # this checkout may be installed
from datetime import UTC, datetime
from schemas.codec import encode_signature
from schemas.document import Document
from streams import signer
from streams.hashing import HashKey
from streams.scheme import preset
key = HashKey.public()
made = signer.Signer(preset("standard", key), key)
text = "語 e\\u0323\\u0301t " * 50 + "word " * 400
document = Document(id="x", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
print(made.implementation, encode_signature(made.sign(document)).hex(), signer.__file__)
"""


def run(command: list[str], **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(folder: Path, **environment: str) -> Path:
    """A wheel, made without network from a copy."""
    pytest.importorskip("setuptools", minversion="77", reason="a build without network needs setuptools 77 or newer")
    pytest.importorskip("pip", reason="a build needs pip")
    source, target = folder / "source", folder / "wheel"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("schemas", "streams", "workers"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    run([*build, "--disable-pip-version-check", "--wheel-dir", str(target), str(source)], **environment)
    (wheel,) = target.iterdir()
    return wheel


def signed(wheel: Path, folder: Path) -> list[str]:
    """Implementation and signature, from the unpacked wheel."""
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder / "unpacked")
    words = run([sys.executable, "-P", "-c", SIGN], PYTHONPATH=str(folder / "unpacked")).split()
    assert words[2].startswith(str(folder))
    return words[:2]


def libraries(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as opened:
        return [name for name in opened.namelist() if name.endswith((".so", ".c", ".h", ".o"))]


def test_a_wheel_signs_without_a_compiler_as_with_one(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("without", "vectors", "plain")}
    for folder in folders.values():
        folder.mkdir()
    wheel = built(folders["without"], CC="/bin/false", LDSHARED="/bin/false")
    assert libraries(wheel) == []
    implementation, expected = signed(wheel, folders["without"])
    assert implementation == "numpy"
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("no compiler here")
    for name, flag in (("vectors", ""), ("plain", " -DNEARSTREAM_PLAIN")):  # the latter as on other processors
        wheel = built(folders[name], CFLAGS="-Wall -Wextra -Werror" + flag)
        assert libraries(wheel) == ["streams/_native.abi3.so"]
        assert "-cp311-abi3-" in wheel.name
        assert signed(wheel, folders[name]) == ["native", expected]
