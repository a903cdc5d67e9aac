"""The IMAP of Dovecot, with mailboxes in a folder, for one client that talks to it on a pipe."""

import imaplib
import os
import pwd
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.devstack.debian import unpacked

# Where doveconf looks for the settings that plugins have, and nothing tells it another place. Dovecot 2.4 refuses a
# setting that it does not find there.
_LIBRARIES = b"/usr/lib/dovecot"


@dataclass(frozen=True)
class _Syntax:
    """How a version of Dovecot is configured and run."""

    main: str  # its configuration
    # The options of doveconf that are followed by a program, which it runs with the configuration.
    running: tuple[str, ...]


_ALL = """\
base_dir = {folder}/run
state_dir = {folder}/run
mail_plugin_dir = {libraries}/modules
log_path = {folder}/log
ssl = no
stats_writer_socket_path =
first_valid_uid = 1
mail_uid = {uid}
mail_gid = {gid}
"""
_SYNTAXES = {
    "2.3": _Syntax(
        _ALL
        + """\
import_environment = TZ PATH LD_LIBRARY_PATH
mail_location = maildir:{folder}/mail
plugin {{
  sieve_plugin_dir = {libraries}/modules/sieve
}}
""",
        ("-f", "service=imap", "-m", "imap", "-e"),
    ),
    "2.4": _Syntax(
        """\
dovecot_config_version = 2.4.0
dovecot_storage_version = 2.4.0
"""
        + _ALL
        + """\
mail_driver = maildir
mail_path = {folder}/mail
sieve_plugin_dir = {libraries}/modules/sieve
""",
        ("-F",),
    ),
}


@contextmanager
def imap(folder: Path, more: Mapping[str, str]) -> Iterator[imaplib.IMAP4]:
    """Yield a client of a Dovecot that runs for the block, logged in.

    The processes that a Dovecot has beside this one, for logins and more than one user, look for programs in `/usr`.

    Args:
        folder: A folder to be made, for configuration, log and mailboxes. All users may enter its parent.
        more: Further lines of its configuration, for each version of Dovecot.
    """
    tree = unpacked("dovecot-imapd")
    libraries = folder / "lib"  # where everybody may look for it, whose folder the tree may be in
    shutil.copytree(tree.root / "usr/lib/dovecot", libraries, symlinks=True)
    (folder / "run").mkdir()
    uid, gid, become = os.geteuid(), os.getegid(), list[str]()
    if uid == 0:  # which Dovecot lets read no mail
        nobody = pwd.getpwnam("nobody")
        uid, gid = nobody.pw_uid, nobody.pw_gid
        # The tree may lie in a folder of root, which others may not enter.
        reads = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
        become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *reads]
        for made in (folder, folder / "run"):
            os.chown(made, uid, gid)
    environment = tree.environment(libraries)
    version = _version(tree.program("dovecot"), environment)
    syntax = _SYNTAXES[version]
    config = folder / "dovecot.conf"
    config.write_text(syntax.main.format(folder=folder, libraries=libraries, uid=uid, gid=gid) + more[version])
    doveconf = folder / "doveconf"
    shutil.copy(tree.program("doveconf"), doveconf)
    here = libraries.name.encode().ljust(len(_LIBRARIES), b"/")  # as long as before, and found from the folder
    doveconf.write_bytes(doveconf.read_bytes().replace(_LIBRARIES, here))
    reading = [str(doveconf), "-c", str(config), *syntax.running]
    command = [
        *become,
        "env",
        f"--chdir={folder}",
        f"LD_LIBRARY_PATH={environment['LD_LIBRARY_PATH']}",
        f"HOME={folder}",
        "USER=anna",
        *reading,
        str(libraries / "imap"),
    ]
    with imaplib.IMAP4_stream(shlex.join(command)) as client:
        yield client


def _version(dovecot: Path, environment: dict[str, str]) -> str:
    """Return the version of Dovecot, such as 2.4, within which the syntax is one."""
    asked = [str(dovecot), "--version"]
    printed = subprocess.run(asked, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    return ".".join(printed.split(".")[:2])
