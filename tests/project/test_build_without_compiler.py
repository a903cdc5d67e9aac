"""Wheels built with and without a compiler make equal signatures."""

import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.distributions import HAS_COMPILER, NO_COMPILER, build, copy_sources, run

pytestmark = pytest.mark.foreign

LIBRARY = "nearstream/streams/native/_native.abi3.so"
SIGN = """
from datetime import UTC, datetime
from nearstream import Document, HashKey, Signer, preset
from nearstream.schemas.topics.codec import encode_signature
from nearstream.streams.signing import signer
key = HashKey.public()
text = "語 e\\u0323\\u0301t " * 50 + "word " * 400
document = Document(id="x", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
made = Signer(preset("standard", key), key)
print(made.implementation, encode_signature(made.sign(document)).hex(), signer.__file__)
"""


def build_wheel(folder: Path, **variables: str) -> Path:
    return build("build_wheel", copy_sources(folder / "sources"), folder / "wheel", **variables)


def sign(wheel: Path, folder: Path) -> tuple[str, str]:
    """Return the implementation and a signature from an unpacked wheel."""
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder)
    implementation, signature, file = run([sys.executable, "-P", "-c", SIGN], folder, PYTHONPATH=str(folder)).split()
    assert Path(file).is_relative_to(folder)
    return implementation, signature


def libraries(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as opened:
        return [name for name in opened.namelist() if name.endswith((".so", ".c", ".h", ".o"))]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the signature by a wheel that was built without a compiler."""
    folder = tmp_path_factory.mktemp("without")
    wheel = build_wheel(folder, **NO_COMPILER)
    assert libraries(wheel) == []
    implementation, signature = sign(wheel, folder / "unpacked")
    assert implementation == "numpy"
    return signature


def test_a_wheel_signs_without_a_compiler_as_with_one(expected: str, wheel: Path, tmp_path: Path) -> None:
    if not HAS_COMPILER:
        pytest.skip("no compiler here")
    plain = build_wheel(tmp_path / "plain", CFLAGS="-Wall -Wextra -Werror -DNEARSTREAM_PLAIN")  # as on other processors
    for number, built in enumerate((wheel, plain)):
        assert libraries(built) == [LIBRARY]
        assert "-cp311-abi3-" in built.name
        assert sign(built, tmp_path / str(number)) == ("native", expected)
