"""Units of systemd, as `systemd-analyze` of Debian judges them."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.devstack.debian import unpacked

INSTALLED = "/opt/nearstream/bin/nearstream"


def verified(units: Iterable[Path], folder: Path) -> tuple[int, str, str]:
    """Return exit code and output of `systemd-analyze verify` over copies of units that name our command.

    Of a template, the instance `all` is judged.
    """
    tree = unpacked("systemd")
    program = folder / "nearstream"
    program.symlink_to(Path(sys.executable).parent / "nearstream")
    copies = []
    for unit in units:
        (folder / unit.name).write_text(unit.read_text().replace(INSTALLED, str(program)))
        copies.append(folder / unit.name.replace("@.", "@all."))
    # The units that ours name are those of the tree.
    known = f"{folder}:{tree.root / 'usr/lib/systemd/system'}:{tree.root / 'lib/systemd/system'}"
    done = subprocess.run(
        [tree.program("systemd-analyze"), "verify", "--man=no", "--recursive-errors=one", *copies],
        env=os.environ | tree.environment(*tree.private_libraries) | {"SYSTEMD_UNIT_PATH": known},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr
