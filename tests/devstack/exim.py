"""An Exim of our own on a free loopback port, which passes each mail on to another server."""

import os
import pwd
import shutil
from pathlib import Path

from tests.devstack.debian import Unpacked, unpacked
from tests.devstack.postfix import greets
from tests.devstack.server import LocalServer, StackUnavailableError, free_ports

_USER = "Debian-exim"  # which the program of Debian looks for, and other machines do not have
_OWNER = "mail"
_CONFIGURATION = """\
exim_path = {program}
spool_directory = {folder}/spool
log_file_path = {folder}/log-%s
pid_file_path = {folder}/pid
primary_hostname = mx.example
local_interfaces = 127.0.0.1
daemon_smtp_ports = {port}
acl_smtp_rcpt = accept_all
tls_advertise_hosts =
keep_environment =
add_environment = <; {variables}

begin acl
accept_all:
  accept

begin routers
{routers}
pass_on:
  driver = accept
  transport = next_hop

begin transports
{transports}
next_hop:
  driver = smtp
  hosts = {host}
  port = {next_port}
  allow_localhost

begin retry
* * F,1h,2s
"""


def exim_server(folder: Path, next_hop: str, routers: str, transports: str) -> LocalServer:
    """Return an Exim, not started yet, that keeps configuration, queue and log in the folder.

    Args:
        folder: A folder to be made. All users may enter its parent.
        next_hop: `host:port` of the SMTP server that gets each mail.
        routers: Routers before the one that passes mail on.
        transports: The transports that they name.

    Raises:
        StackUnavailableError: There is no Exim, or we are not root, which it needs.
    """
    if os.geteuid() != 0:
        raise StackUnavailableError("no Exim: only root may start it")
    (port,), owner = free_ports(1), pwd.getpwnam(_OWNER)
    downloaded = unpacked("exim4-daemon-light")
    host, next_port = next_hop.rsplit(":", 1)
    for made in (folder, folder / "spool"):
        made.mkdir()
        os.chown(made, owner.pw_uid, owner.pw_gid)
    tree = Unpacked(folder / "tree")  # where the user of Exim may look for it
    for part in ("usr/sbin", "usr/lib", "lib"):
        shutil.copytree(downloaded.root / part, tree.root / part, symlinks=True)
    users = f"root:x:0:0::/root:/bin/sh\n{_USER}:x:{owner.pw_uid}:{owner.pw_gid}::/:/bin/false\n"
    (folder / "passwd").write_text(users)
    (folder / "group").write_text(f"root:x:0:\nadm:x:4:\n{_USER}:x:{owner.pw_gid}:\n")
    program, configuration = tree.program("exim4"), folder / "exim.conf"
    program.chmod(0o755)  # a program that is setuid ignores where its libraries are
    (wrapper,) = tree.root.glob("usr/lib/*/libnss_wrapper.so")
    environment = {
        **tree.environment(),
        "LD_PRELOAD": str(wrapper),
        "NSS_WRAPPER_PASSWD": str(folder / "passwd"),
        "NSS_WRAPPER_GROUP": str(folder / "group"),
    }
    variables = [f"{name}={value}" for name, value in environment.items()]
    configuration.write_text(
        _CONFIGURATION.format(
            program=program,
            folder=folder,
            port=port,
            variables="; ".join(variables),
            routers=routers,
            transports=transports,
            host=host,
            next_port=next_port,
        )
    )
    command = ["env", *variables, str(program), "-C", str(configuration), "-bdf", "-q1m"]
    return LocalServer("Exim", f"127.0.0.1:{port}", command, folder / "output", greets)
