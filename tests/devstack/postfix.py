"""A Postfix of our own on a free loopback port, which passes each mail on to another server."""

import os
import pwd
import shutil
import smtplib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.devstack.debian import Unpacked, unpacked
from tests.devstack.server import LocalServer, StackUnavailableError, free_ports

# Users that every Debian has. Postfix wants three that share nothing, of which its own owns the queue.
OWNER, GROUP, NOBODY = "daemon", "mail", "nobody"
_OF_OWNER = (
    "active",
    "bounce",
    "corrupt",
    "defer",
    "deferred",
    "flush",
    "hold",
    "incoming",
    "private",
    "saved",
    "trace",
)
_SERVICES = """\
127.0.0.1:{port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
smtp unix - - n - - smtp
lmtp unix - - n - - lmtp
error unix - - n - - error
retry unix - - n - - error
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
"""


@contextmanager
def postfix_folder() -> Iterator[Path]:
    """Make a folder that Postfix's own user may enter, which those of pytest do not allow."""
    with tempfile.TemporaryDirectory(prefix="nearstream-postfix-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "postfix").mkdir()
        yield folder


def main_lines(path: Path, **replaced: str) -> dict[str, str]:
    """Return the lines of a main.cf, with ports replaced: `_9466="20001"`."""
    text = path.read_text()
    for port, other in replaced.items():
        text = text.replace(f":{port[1:]}", f":{other}")
    return dict(line.split(" = ", 1) for line in text.splitlines() if not line.startswith("#"))


def postfix_server(folder: Path, next_hop: str, settings: dict[str, str]) -> LocalServer:
    """Return a Postfix, not started yet, that keeps configuration, queue and log in the folder.

    Args:
        folder: An empty folder, which all users may enter.
        next_hop: `host:port` of the SMTP server that gets each mail.
        settings: More lines of main.cf.
    """
    if os.geteuid() != 0:
        raise StackUnavailableError("no Postfix: only root may start it")
    tree = unpacked("postfix")
    (port,) = free_ports(1)
    for made in ("etc", "spool", "data"):
        (folder / made).mkdir()
    (folder / "etc/master.cf").write_text(_SERVICES.format(port=port))
    (folder / "etc/dynamicmaps.cf").touch()
    main = _main(folder, tree, next_hop) | settings
    (folder / "etc/main.cf").write_text("".join(f"{name} = {value}\n" for name, value in main.items()))
    _make_queue(folder)
    libraries = tree.environment(tree.root / "usr/lib/postfix")["LD_LIBRARY_PATH"]
    master = tree.root / "usr/lib/postfix/sbin/master"
    command = ["env", f"LD_LIBRARY_PATH={libraries}", str(master), "-c", str(folder / "etc"), "-d"]
    return LocalServer("Postfix", f"127.0.0.1:{port}", command, folder / "log", greets)


def _main(folder: Path, tree: Unpacked, next_hop: str) -> dict[str, str]:
    host, port = next_hop.rsplit(":", 1)
    libraries = tree.environment(tree.root / "usr/lib/postfix")["LD_LIBRARY_PATH"]
    passed_on = "MAIL_CONFIG MAIL_LOGTAG POSTLOG_SERVICE POSTLOG_HOSTNAME TZ LANG=C"  # needed in every daemon
    return {
        "compatibility_level": "3.6",
        "queue_directory": str(folder / "spool"),
        "data_directory": str(folder / "data"),
        "meta_directory": str(folder / "etc"),
        "command_directory": str(tree.root / "usr/sbin"),
        "daemon_directory": str(tree.root / "usr/lib/postfix/sbin"),
        "shlib_directory": str(tree.root / "usr/lib/postfix"),
        "mail_owner": OWNER,
        "setgid_group": GROUP,
        "default_privs": NOBODY,
        "import_environment": f"{passed_on} LD_LIBRARY_PATH={libraries}",
        "maillog_file": str(folder / "log"),
        "maillog_file_prefixes": str(folder),
        "inet_interfaces": "127.0.0.1",
        "inet_protocols": "ipv4",
        "myhostname": "mx.example",
        "mydestination": "",
        "alias_maps": "",
        "alias_database": "",
        "smtpd_relay_restrictions": "permit_mynetworks,reject",
        "mynetworks": "127.0.0.0/8",
        "default_transport": f"smtp:[{host}]:{port}",
        "smtp_tls_security_level": "",
        "smtpd_peername_lookup": "no",
    }


def _make_queue(folder: Path) -> None:
    spool = folder / "spool"
    for name in _OF_OWNER:
        (spool / name).mkdir(mode=0o700)
        shutil.chown(spool / name, OWNER)
    for name, mode in (("maildrop", 0o730), ("public", 0o710)):
        (spool / name).mkdir()
        shutil.chown(spool / name, OWNER, GROUP)
        (spool / name).chmod(mode)
    (spool / "pid").mkdir()
    shutil.chown(folder / "data", pwd.getpwnam(OWNER).pw_uid)
    (folder / "data").chmod(0o700)


def greets(address: str) -> bool:
    """Return whether the server greets a client."""
    host, port = address.rsplit(":", 1)
    try:
        with smtplib.SMTP(host, int(port), timeout=5) as client:
            return client.noop()[0] == 250
    except (OSError, smtplib.SMTPException):
        return False
