"""The distributions hold what they should, are built on any machine, and work where they are installed."""

import asyncio
import json
import os
import platform
import re
import shutil
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.devstack.parts import list_parts, tools
from tests.devstack.release import MACHINES, OLDEST_LIBC, copy_sources, make_release
from tests.devstack.server import run_to_end
from tests.devstack.wheels import make_environment
from tests.support.deployment import LINES, deployed
from tests.support.distributions import README_EXAMPLE, ROOT, build, run

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(1800)]  # all dependencies are installed first

ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
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
WARNINGS = "-Wall -Wextra -Werror"
COMPILER = re.compile(r".*(cc|[cg]\+\+|clang)(-[\d.]+)?|[ct]cc|c[89]9|.*cpp.*|(.*-)?(ld|as)(\..*)?")
# The extras `crawl` and `scrapy` are needed by the modules that it leaves out.
CLIENT = """
import importlib, pkgutil
import nearstream, schemas, streams, workers
from nearstream import *

assert set(nearstream.__all__) <= globals().keys()
assert [each.OWNER for each in (schemas, streams, workers)] == ["client"] * 3
left_out = ("__main__", *(f".html_{room}" for room in ("child", "mail", "markup", "page", "seen")))
for module in pkgutil.walk_packages(nearstream.__path__, "nearstream."):
    if ".scrapy" not in module.name and not module.name.endswith(left_out):
        importlib.import_module(module.name)
print(nearstream.__file__)
"""
TYPED = """
from nearstream import HashKey, Matcher, Signer, local_store, preset

key = HashKey.public()
scheme = preset("fine", key)
reveal_type(scheme)
Signer(scheme, "not a key")
"""
SIGN = """
from datetime import UTC, datetime
from nearstream import Document, HashKey, Signer, preset
from nearstream.schemas.topics.codec import encode_signature
key = HashKey.public()
text = "語 e\\u0323\\u0301t " * 50 + "word " * 400
document = Document(id="x", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
print(encode_signature(Signer(preset("fine", key), key).sign(document)).hex())
"""


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    sources = copy_sources(folder / "sources")
    # An editable installation leaves the compiled part there, but a source distribution must not contain it.
    (sources / "src" / LIBRARY).write_bytes(b"")
    return build("build_sdist", sources, folder / "made")


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that is built from the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.unpack_archive(sdist, folder / "unpacked")
    (sources,) = (folder / "unpacked").iterdir()
    return build("build_wheel", sources, folder / "made", CFLAGS=WARNINGS)


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a release."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    make_release(folder)
    return folder


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `bin` folder of a new virtual environment with the wheel and its dependencies alone."""
    folder = tmp_path_factory.mktemp("bare")
    make_environment([str(wheel)], folder)
    return folder / "bin"


def test_the_distributions_have_every_module_and_its_data_and_the_source_nothing_compiled(
    sdist: Path, wheel: Path
) -> None:
    below = {f"nearstream/{path.relative_to(ROOT)}" for floor in FLOORS for path in (ROOT / floor).rglob("*.py")}
    top = {f"nearstream/{path.name}" for path in (ROOT / "src/nearstream").glob("*.py")}
    metadata = f"nearstream-{VERSION}.dist-info"
    with zipfile.ZipFile(wheel) as opened:
        packed = {name for name in opened.namelist() if not name.startswith(metadata)}
        assert b"Apache License" in opened.read(f"{metadata}/licenses/LICENSE")
        assert b"nearstream = nearstream.workers.__main__:main" in opened.read(f"{metadata}/entry_points.txt")
    assert packed == top | below | DATA | {LIBRARY}
    with tarfile.open(sdist) as opened:
        names = {member.name.partition("/")[2] for member in opened if not member.isdir()}
    native = {str(path.relative_to(ROOT)) for path in (ROOT / "src/nearstream/streams/native").rglob("*.[ch]")}
    assert {name for name in names if name.endswith((".c", ".h"))} == native
    assert names >= {f"src/{name}" for name in DATA} | {"README.md", "LICENSE", "build_backend/compiled.py"}
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc")) or name.startswith("tests")]


def test_a_release_is_installed_and_scans_a_folder_within_a_minute(release: Path, tmp_path: Path) -> None:
    tags = {machine: f"nearstream-{VERSION}-cp311-abi3-manylinux_{OLDEST_LIBC}_{machine}.whl" for machine in MACHINES}
    others = {f"nearstream-{VERSION}.tar.gz", "nearstream.cdx.json", "CHANGELOG.md"}
    assert {path.name for path in release.iterdir()} == {*tags.values(), *others}
    for machine, name in tags.items():
        with zipfile.ZipFile(release / name) as opened:
            assert opened.read(LIBRARY)[18] == ELF_MACHINES[machine]
        shown = " ".join(run([sys.executable, "-m", "auditwheel", "show", str(release / name)], tmp_path).split())
        assert f'consistent with the following platform tag: "manylinux_{OLDEST_LIBC}_{machine}"' in shown
    if platform.machine() not in MACHINES:
        pytest.skip("no wheel of the release is for this machine")
    for number, line in enumerate(LINES[:20]):
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / f"{number}.txt").write_text(json.loads(line)["text"])
    began = time.monotonic()
    make_environment([str(release / tags[platform.machine()])], tmp_path / "bare")
    scanned = run([str(tmp_path / "bare/bin/nearstream"), "scan", "--all", "--json", "texts"], tmp_path)
    assert time.monotonic() - began < 60
    assert len(scanned.splitlines()) == 20
    shutil.unpack_archive(release / tags[platform.machine()], tmp_path / "wheel", "zip")
    places = [str(tmp_path / "wheel"), str(ROOT / "src")]
    signed = {run([sys.executable, "-P", "-c", SIGN], tmp_path, PYTHONPATH=place) for place in places}
    assert len(signed) == 1


def test_the_wheel_works_with_its_dependencies_alone_beside_modules_of_its_names(bare: Path, tmp_path: Path) -> None:
    for floor in FLOORS:
        (tmp_path / f"{floor}.py").write_text('OWNER = "client"\n')
    (tmp_path / "client.py").write_text(CLIENT + README_EXAMPLE)
    place, *printed = run([str(bare / "python"), "client.py"], tmp_path).splitlines()
    assert Path(place).is_relative_to(bare.parent)
    assert printed == ["first unique None 1", "second exact_duplicate first 2"]
    assert run([str(bare / "nearstream"), "--version"], tmp_path) == f"nearstream {VERSION}\n"
    told = run([str(bare / "python"), "-P", "-m", "nearstream", "demo"], tmp_path)
    assert re.search(r"^exact_duplicate  \S+ equals ", told, re.MULTILINE)


async def test_a_worker_runs_with_the_dependencies_alone(
    bare: Path, kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker(python=str(bare / "python")) as worker:
            await deployment.send(deployment.examples(LINES[:2]))
            await deployment.drained(180)
        assert worker.returncode == 0
        tail = [str(bare / "nearstream"), "tail", "--from-start", "--until-end", "--json"]
        told = await asyncio.to_thread(run, tail, tmp_path, **deployment.environment)
        assert {json.loads(line)["id"] for line in told.splitlines()} == {json.loads(line)["id"] for line in LINES[:2]}


def test_a_type_checker_sees_the_types_of_the_package(bare: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="the types of the package are checked by mypy")
    (tmp_path / "client.py").write_text(TYPED)
    options = ["--strict", "--no-error-summary", f"--python-executable={bare / 'python'}"]
    mypy = [sys.executable, "-m", "mypy", *options]
    scheme, error = run([*mypy, "client.py"], tmp_path, exit_code=1).splitlines()
    assert 'Revealed type is "nearstream.streams.signing.scheme.Scheme"' in scheme
    assert 'has incompatible type "str"; expected "HashKey"' in error
    (tmp_path / "readme.py").write_text(README_EXAMPLE)
    assert run([*mypy, "readme.py"], tmp_path) == ""


def test_a_wheel_runs_on_systems_as_old_as_the_page_says(wheel: Path, tmp_path: Path) -> None:
    libc, release = platform.libc_ver()
    if libc != "glibc":
        pytest.skip("manylinux is about what a compiler makes for Linux with glibc")
    assert "-cp311-abi3-" in wheel.name
    shown = " ".join(run([sys.executable, "-m", "auditwheel", "show", str(wheel)], tmp_path).split())
    consistent = re.search(r'consistent with the following platform tag: "manylinux_(\d+)_(\d+)_\w+"', shown)
    assert consistent, shown
    told = re.search(
        r"Debian 12 is\nconsistent with `manylinux_(\d+)_(\d+)`",
        (ROOT / "docs/compatibility.md").read_text(encoding="utf-8"),
    )
    assert told
    if int(release.partition(".")[2]) <= 36:  # 2.36 is that of Debian 12, of which the page speaks
        assert consistent.groups() == told.groups()


def test_a_wheel_signs_without_vector_instructions_as_with_them(wheel: Path, tmp_path: Path) -> None:
    sources = copy_sources(tmp_path / "sources")
    plain = build("build_wheel", sources, tmp_path / "plain", CFLAGS=f"{WARNINGS} -DNEARSTREAM_PLAIN")
    signed = set()
    for each in (plain, wheel):
        shutil.unpack_archive(each, tmp_path / each.parent.name, "zip")
        signed.add(run([sys.executable, "-P", "-c", SIGN], tmp_path, PYTHONPATH=str(tmp_path / each.parent.name)))
    assert len(signed) == 1


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


@pytest.mark.parametrize("way", [["pipx", "install"], ["uv", "tool", "install"]], ids=["pipx", "uv"])
def test_the_command_is_installed_in_an_environment_of_its_own(way: list[str], tmp_path: Path) -> None:
    run_to_end(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "copy")], purpose="copying the checkout")
    names = {"PIPX_HOME": "home", "PIPX_BIN_DIR": "bin", "UV_TOOL_DIR": "home", "UV_TOOL_BIN_DIR": "bin"}
    places = [f"{name}={tmp_path / folder}" for name, folder in names.items()]
    run_to_end(["env", *places, *tools(), *way, str(tmp_path / "copy")], purpose="installing the command")
    assert run([str(tmp_path / "bin/nearstream"), "--version"], tmp_path) == f"nearstream {VERSION}\n"


def test_the_list_of_parts_has_all_that_the_lock_of_the_image_names(tmp_path: Path) -> None:
    list_parts(tmp_path / "parts.json")
    listed = json.loads((tmp_path / "parts.json").read_text())
    locked = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "deploy/requirements.lock").read_text(), re.MULTILINE)
    assert {(part["name"], part["version"]) for part in listed["components"]} == set(locked)
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == ("CycloneDX", "nearstream")
