"""An rspamd of our own on a free loopback port, with the rules of one Lua file and no others."""

import os
from pathlib import Path

from tests.devstack.debian import unpacked
from tests.devstack.server import LocalServer, answers_http, free_ports

# Without a list of its own of top-level domains it would compile 9,628 of them for a minute.
_CONFIGURATION = """\
options {
  filters = []; url_tld = "$RUNDIR/tld.dat"; tempdir = "$RUNDIR"; control_socket = "$RUNDIR/control.sock mode=0600";
  lang_detection { languages = "$SHAREDIR/languages"; }
  dns { nameserver = ["127.0.0.1:1"]; timeout = 0.1s; retransmits = 1; }
}
logging { type = "console"; level = "info"; }
modules { path = []; }
worker "normal" { bind_socket = "$ADDRESS"; count = 1; hs_cache_dir = "$RUNDIR"; }
composites { .include "$RUNDIR/composites.conf" }
lua = "$RUNDIR/rules.lua";
"""


def rspamd_server(folder: Path, rules: str, composites: str, configuration: str = _CONFIGURATION) -> LocalServer:
    """Return an rspamd, not started yet.

    Args:
        folder: For configuration, state and log.
        rules: A Lua file, as rspamd.local.lua.
        composites: A file as local.d/composites.conf.
        configuration: In place of the usual one, in which `$ADDRESS` is where it listens.
    """
    tree = unpacked("rspamd")
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rspamd.conf").write_text(configuration.replace("$ADDRESS", address))
    (folder / "tld.dat").write_text("com\nexample\n")
    (folder / "rules.lua").write_text(rules)
    (folder / "composites.conf").write_text(composites)
    share = tree.root / "usr/share/rspamd"
    places = {
        "SHAREDIR": share,
        "LUALIBDIR": share / "lualib",
        "RULESDIR": share / "rules",
        "PLUGINSDIR": share / "plugins",
        **dict.fromkeys(("DBDIR", "RUNDIR", "LOGDIR", "CONFDIR", "LOCAL_CONFDIR"), folder),
    }
    variables = [word for name, place in places.items() for word in ("--var", f"{name}={place}")]
    libraries = tree.environment(tree.root / "usr/lib/rspamd")["LD_LIBRARY_PATH"]
    user = ["--insecure"] if os.geteuid() == 0 else []  # root would have to name another user
    command = [str(tree.program("rspamd")), "--no-fork", "--config", str(folder / "rspamd.conf"), *user, *variables]
    command = ["env", f"LD_LIBRARY_PATH={libraries}", *command]
    return LocalServer("rspamd", address, command, folder / "server.log", answers_http("/ping"))
