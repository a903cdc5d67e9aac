"""Build with setuptools, and with a C compiler from the package registry where the machine has none.

Build frontends call the functions of this module (PEP 517, PEP 660). All but those below are those of setuptools.
"""

import os
import platform
import shlex
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

_COMPILERS = ("cc", "gcc", "clang")
_ZIG = "ziglang>=0.13"
# Arguments that are passed on. Those of the interpreter's own build are meant for another compiler.
_KEPT = ("-c", "-o", "-I", "-D", "-U", "-O", "-L", "-l", "-isystem", "-std=", "-shared", "-fPIC", "-fwrapv", "-ffp-")

_Settings = dict[str, str | list[str] | None] | None


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """Return what building a wheel needs."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler_package()]


def get_requires_for_build_editable(config_settings: _Settings = None) -> list[str]:
    """Return what an editable installation needs."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler_package()]


def build_wheel(wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None) -> str:
    """Build a wheel and return its name."""
    with _compiler():
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel of an editable installation and return its name."""
    with _compiler():
        return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)


def _found() -> str | None:
    """Return the compiler of this machine, the one that `CC` or the interpreter names if it is there."""
    named = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    if shutil.which(shlex.split(named)[0]):
        return named
    return next(filter(shutil.which, _COMPILERS), None)


def _compiler_package() -> list[str]:
    return [] if _found() else [_ZIG]


@contextmanager
def _compiler() -> Iterator[None]:
    """Let setuptools compile and link with the compiler that was found, or else with zig."""
    include = sysconfig.get_path("include")
    if not (Path(include) / "Python.h").exists():
        version = "{}.{}".format(*sys.version_info)
        sys.exit(
            f"{include}/Python.h is missing: install python{version}-dev (Debian, Ubuntu) or python{version}-devel"
            " (Fedora), or install a wheel, which needs no headers"
        )
    compiler, before = _found(), os.environ.copy()
    with tempfile.TemporaryDirectory() as folder:
        if compiler is None:
            compiler = zig_in(Path(folder), platform.machine())
        if compiler != sysconfig.get_config_var("CC"):
            os.environ |= {"CC": compiler, "LDSHARED": os.environ.get("LDSHARED") or f"{compiler} -shared"}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ |= before


def zig_in(folder: Path, machine: str) -> str:
    """Write a script that compiles as `cc` does, for processors of this name, and return its path."""
    import ziglang  # a requirement of the build only where there is no compiler

    # Without a target zig compiles for this very processor. Old versions of glibc let a wheel run on other systems.
    target = []
    if sys.platform == "linux":
        libc = "gnu.2.17" if platform.libc_ver()[0] == "glibc" else "musl"
        target = ["-target", f"{machine}-linux-{libc}"]
    zig = [str(Path(ziglang.__file__).parent / "zig"), "cc", *target, "-fno-sanitize=undefined"]
    script = folder / "cc"
    script.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        f"os.environ.setdefault('ZIG_GLOBAL_CACHE_DIR', {str(folder / 'cache')!r})\n"
        f"kept = [each for each in sys.argv[1:] if not each.startswith('-') or each.startswith({_KEPT!r})]\n"
        f"os.execv({zig[0]!r}, [*{zig!r}, *kept])\n"
    )
    script.chmod(0o755)
    return str(script)
