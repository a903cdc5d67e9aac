"""The distributions contain one import name and work where they are installed."""

import ast
import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import nearstream
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
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CLIENT = """
import nearstream, schemas, streams, workers
from nearstream import Document, HashKey, Matcher, Signer, local_store, preset

assert [each.OWNER for each in (schemas, streams, workers)] == ["client"] * 3
print(nearstream.__file__)
"""
TYPED = """
from nearstream import Event, HashKey, Matcher, Signer, local_store, preset

key = HashKey.public()
scheme = preset("standard", key)
reveal_type(scheme)
reveal_type(Matcher(local_store(), scheme, key).match)
Signer(scheme, "not a key")
"""
IMPORT_ALL = """
import importlib, pkgutil, sys
import nearstream
for module in pkgutil.walk_packages(nearstream.__path__, "nearstream."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


@pytest.fixture(scope="module")
def sdist_names(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as opened:
        return {member.name.partition("/")[2] for member in opened if not member.isdir()}


@pytest.fixture(params=["installed", "installed_editable"])
def python(request: pytest.FixtureRequest) -> str:
    """Return the interpreter of each installation."""
    return str(request.getfixturevalue(request.param) / "python")


def test_a_wheel_adds_one_name(wheel_names: set[str]) -> None:
    metadata = f"nearstream-{PROJECT['version']}.dist-info"
    assert {name.partition("/")[0] for name in wheel_names} == {"nearstream", metadata}


def test_a_wheel_contains_every_module_and_its_data_and_nothing_else(wheel_names: set[str]) -> None:
    top = {f"nearstream/{path.name}" for path in (ROOT / "src/nearstream").glob("*.py")}
    below = {f"nearstream/{path.relative_to(ROOT)}" for floor in FLOORS for path in (ROOT / floor).rglob("*.py")}
    packed = {name for name in wheel_names if name.startswith("nearstream/")}
    assert packed - {LIBRARY} == top | below | DATA


def test_a_wheel_contains_the_license_and_the_command(wheel: Path) -> None:
    metadata = f"nearstream-{PROJECT['version']}.dist-info"
    with zipfile.ZipFile(wheel) as opened:
        assert b"Apache License" in opened.read(f"{metadata}/licenses/LICENSE")
        assert b"nearstream = nearstream.workers.__main__:main" in opened.read(f"{metadata}/entry_points.txt")


def test_a_source_distribution_contains_what_a_build_needs(sdist_names: set[str]) -> None:
    native = {str(path.relative_to(ROOT)) for path in (ROOT / "src/nearstream/streams/native").rglob("*.[ch]")}
    assert {name for name in sdist_names if name.endswith((".c", ".h"))} == native
    assert sdist_names >= {f"src/{name}" for name in DATA} | {"pyproject.toml", "README.md", "LICENSE"}


def test_a_source_distribution_contains_nothing_compiled_and_no_tests(sdist_names: set[str]) -> None:
    assert [name for name in sdist_names if name.endswith((".so", ".o", ".pyc"))] == []
    assert {name.split("/")[0] for name in sdist_names if "/" in name} == {"src"}


def test_the_command_runs_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    version = f"nearstream {PROJECT['version']}\n"
    assert run([str(installed / "nearstream"), "--version"], tmp_path) == version
    assert run([str(installed / "python"), "-m", "nearstream", "--version"], tmp_path) == version
    assert re.search(r"^agreement \d", run([str(installed / "nearstream"), "demo"], tmp_path), re.MULTILINE)


def test_an_editable_installation_finds_the_examples(installed_editable: Path, tmp_path: Path) -> None:
    assert re.search(r"^agreement \d", run([str(installed_editable / "nearstream"), "demo"], tmp_path), re.MULTILINE)


def test_a_project_with_modules_of_the_same_names_uses_the_package(python: str, tmp_path: Path) -> None:
    for floor in FLOORS:
        (tmp_path / f"{floor}.py").write_text('OWNER = "client"\n')
    (tmp_path / "client.py").write_text(CLIENT + README_EXAMPLE)
    file, *printed = run([python, "client.py"], tmp_path).splitlines()
    assert not Path(file).is_relative_to(ROOT)
    assert printed == ["first unique None 1", "second exact_duplicate first 2"]


def test_a_type_checker_sees_the_types_of_the_package(
    python: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("mypy", reason="the types of the package are checked by mypy")
    (tmp_path / "client.py").write_text(TYPED)
    cache = tmp_path_factory.getbasetemp() / "mypy"  # numpy's types are analyzed once for both installations
    options = ["--strict", "--no-error-summary", f"--cache-dir={cache}", f"--python-executable={python}"]
    mypy = [sys.executable, "-m", "mypy", *options]
    scheme, match, error = run([*mypy, "client.py"], tmp_path, exit_code=1).splitlines()
    assert 'Revealed type is "nearstream.streams.signing.scheme.Scheme"' in scheme
    assert "nearstream.streams.matching.telling.Matched" in match
    assert 'has incompatible type "str"; expected "HashKey"' in error
    (tmp_path / "readme.py").write_text(README_EXAMPLE)
    assert run([*mypy, "readme.py"], tmp_path) == ""


def test_no_module_is_loaded_under_the_name_of_its_folder(installed: Path, tmp_path: Path) -> None:
    loaded = set(run([str(installed / "python"), "-c", IMPORT_ALL], tmp_path).split())
    assert {"nearstream", "numpy", "faust", "redis"} <= loaded
    assert not FLOORS & loaded
    assert not FLOORS & sys.modules.keys()


def test_the_lists_of_public_names_agree() -> None:
    tree = ast.parse((ROOT / "src/nearstream/__init__.py").read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(imported) == sorted(nearstream.__all__)
    assert imported == {name: f"nearstream.{module}" for name, module in nearstream._MODULE_OF.items()}
    for name, module in imported.items():
        assert getattr(nearstream, name) is getattr(sys.modules[str(module)], name)
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        nearstream.absent  # noqa: B018 - looking it up is what fails


def test_s22_the_lock_of_the_image_has_what_the_project_needs_by_hash() -> None:
    """Each line pins a version, which `pyproject.toml` allows, by the hashes of its files."""
    lock = (ROOT / "deploy/requirements.lock").read_text().replace("\\\n", " ")
    pinned: dict[str, list[tuple[Marker | None, str]]] = {}
    for line in lock.splitlines():
        requirement, *hashes = re.split(r"\s+--hash=sha256:", line.strip())
        assert hashes, line
        assert all(re.fullmatch(r"[0-9a-f]{64}", each) for each in hashes), line
        one = Requirement(requirement)
        (version,) = one.specifier
        assert version.operator == "==", line
        pinned.setdefault(canonicalize_name(one.name), []).append((one.marker, version.version))
    for text in PROJECT["dependencies"]:
        needed = Requirement(text)
        found = pinned[canonicalize_name(needed.name)]
        assert all(needed.specifier.contains(version) for _, version in found), text
