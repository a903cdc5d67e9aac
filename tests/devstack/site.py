"""Build the documentation site, with MkDocs in a virtual environment of its own."""

import subprocess
import sys
from pathlib import Path

from tests.devstack.wheels import python_environment

PACKAGES = ("mkdocs-material==9.8.1", "mkdocstrings[python]==1.0.8")
CONFIG = Path(__file__).resolve().parents[2] / "docs/site/mkdocs.yml"


def build(config: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build a site. It fails at a broken link, a page that is in no menu, and a name without a docstring."""
    python = python_environment(*PACKAGES) / "bin/python"
    command = [str(python), "-m", "mkdocs", "build", "--clean", "--config-file", str(config), "--site-dir", str(target)]
    notice = {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=notice)


if __name__ == "__main__":
    done = build(CONFIG, Path("build/site").resolve())
    sys.stderr.write(done.stderr)
    sys.exit(done.returncode)
