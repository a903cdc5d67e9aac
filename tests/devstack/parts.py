"""List the parts of the image as a CycloneDX file (SBOM), and get tools that install programs."""

from pathlib import Path

from tests.devstack.server import run_to_end
from tests.devstack.wheels import python_environment

PACKAGES = ("cyclonedx-bom==7.5.0", "pipx", "uv")
ROOT = Path(__file__).resolve().parents[2]


def tools() -> list[str]:
    """Return the command that runs a module of the tools, without the name of the module."""
    return [str(python_environment(*PACKAGES) / "bin/python"), "-m"]


def list_parts(target: Path) -> None:
    """Write the list of what the lock of the image names, with versions and hashes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = ["--pyproject", str(ROOT / "pyproject.toml"), "-o", str(target), str(ROOT / "deploy/requirements.lock")]
    run_to_end([*tools(), "cyclonedx_py", "requirements", *lock], purpose="listing the parts")


if __name__ == "__main__":
    list_parts(Path("build/nearstream.cdx.json"))
