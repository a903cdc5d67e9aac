"""The distributions hold what they should, and work where they are installed."""

import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.distributions import README_EXAMPLE, ROOT, run

pytestmark = pytest.mark.foreign

FLOORS = {"schemas", "streams", "workers"}
LIBRARY = "nearstream/streams/native/_native.abi3.so"
DATA = {
    "nearstream/py.typed",
    "nearstream/examples/documents.jsonl",
    "nearstream/examples/relations.jsonl",
    *(f"nearstream/workers/http/live/page/{path.name}" for path in (ROOT / "workers/http/live/page").iterdir()),
    *(f"nearstream/workers/redis/server/lua/{path.name}" for path in (ROOT / "workers/redis/server/lua").iterdir()),
}
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
CLIENT = """
import nearstream, schemas, streams, workers
from nearstream import Document, HashKey, Matcher, Signer, local_store, preset

assert [each.OWNER for each in (schemas, streams, workers)] == ["client"] * 3
print(nearstream.__file__)
"""
TYPED = """
from nearstream import HashKey, Matcher, Signer, local_store, preset

key = HashKey.public()
scheme = preset("fine", key)
reveal_type(scheme)
Signer(scheme, "not a key")
"""


def test_a_wheel_adds_one_name_with_every_module_and_its_data(wheel: Path) -> None:
    below = {f"nearstream/{path.relative_to(ROOT)}" for floor in FLOORS for path in (ROOT / floor).rglob("*.py")}
    top = {f"nearstream/{path.name}" for path in (ROOT / "src/nearstream").glob("*.py")}
    metadata = f"nearstream-{VERSION}.dist-info"
    with zipfile.ZipFile(wheel) as opened:
        packed = {name for name in opened.namelist() if not name.startswith(metadata)}
        assert b"Apache License" in opened.read(f"{metadata}/licenses/LICENSE")
        assert b"nearstream = nearstream.workers.__main__:main" in opened.read(f"{metadata}/entry_points.txt")
    assert packed == top | below | DATA | {LIBRARY}


def test_a_source_distribution_has_what_a_build_needs_and_nothing_compiled(sdist: Path) -> None:
    with tarfile.open(sdist) as opened:
        names = {member.name.partition("/")[2] for member in opened if not member.isdir()}
    native = {str(path.relative_to(ROOT)) for path in (ROOT / "src/nearstream/streams/native").rglob("*.[ch]")}
    assert {name for name in names if name.endswith((".c", ".h"))} == native
    assert names >= {f"src/{name}" for name in DATA} | {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "build_backend/compiled.py",
    }
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc")) or name.startswith("tests")]


def test_the_command_and_the_examples_are_found_outside_the_checkout(
    installed: Path, installed_editable: Path, tmp_path: Path
) -> None:
    assert run([str(installed / "nearstream"), "--version"], tmp_path) == f"nearstream {VERSION}\n"
    assert run([str(installed / "python"), "-m", "nearstream", "--version"], tmp_path) == f"nearstream {VERSION}\n"
    for folder in (installed, installed_editable):
        assert re.search(r"^agreement \d", run([str(folder / "nearstream"), "demo"], tmp_path), re.MULTILINE)


def test_a_project_with_modules_of_the_same_names_uses_the_package(installed: Path, tmp_path: Path) -> None:
    for floor in FLOORS:
        (tmp_path / f"{floor}.py").write_text('OWNER = "client"\n')
    (tmp_path / "client.py").write_text(CLIENT + README_EXAMPLE)
    file, *printed = run([str(installed / "python"), "client.py"], tmp_path).splitlines()
    assert not Path(file).is_relative_to(ROOT)
    assert printed == ["first unique None 1", "second exact_duplicate first 2"]


def test_a_type_checker_sees_the_types_of_the_package(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="the types of the package are checked by mypy")
    (tmp_path / "client.py").write_text(TYPED)
    options = ["--strict", "--no-error-summary", f"--python-executable={installed / 'python'}"]
    mypy = [sys.executable, "-m", "mypy", *options]
    scheme, error = run([*mypy, "client.py"], tmp_path, exit_code=1).splitlines()
    assert 'Revealed type is "nearstream.streams.signing.scheme.Scheme"' in scheme
    assert 'has incompatible type "str"; expected "HashKey"' in error
    (tmp_path / "readme.py").write_text(README_EXAMPLE)
    assert run([*mypy, "readme.py"], tmp_path) == ""
