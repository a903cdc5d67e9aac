"""The IMAP of Dovecot, with mailboxes in a folder, for one client that talks to it on a pipe."""

import imaplib
import os
import pwd
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.devstack.debian import unpacked

_MAIN = """\
base_dir = {folder}/run
state_dir = {folder}/run
mail_plugin_dir = {libraries}/modules
import_environment = TZ PATH LD_LIBRARY_PATH
log_path = {folder}/log
ssl = no
stats_writer_socket_path =
mail_location = maildir:{folder}/mail
first_valid_uid = 1
mail_uid = {uid}
mail_gid = {gid}
plugin {{
  sieve_plugin_dir = {libraries}/modules/sieve
}}
"""


@contextmanager
def imap(folder: Path, more: str) -> Iterator[imaplib.IMAP4]:
    """Yield a client of a Dovecot that runs for the block, logged in.

    The processes that a Dovecot has beside this one, for logins and more than one user, look for programs in `/usr`.

    Args:
        folder: A folder to be made, for configuration, log and mailboxes. All users may enter its parent.
        more: Further lines of its configuration.

    Raises:
        StackUnavailableError: There is no Dovecot.
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
    config = folder / "dovecot.conf"
    config.write_text(_MAIN.format(folder=folder, libraries=libraries, uid=uid, gid=gid) + more)
    path = tree.environment(libraries)["LD_LIBRARY_PATH"]
    reading = [str(tree.program("doveconf")), "-f", "service=imap", "-c", str(config), "-m", "imap", "-e"]
    command = [
        *become,
        "env",
        f"LD_LIBRARY_PATH={path}",
        f"HOME={folder}",
        "USER=anna",
        *reading,
        str(libraries / "imap"),
    ]
    with imaplib.IMAP4_stream(shlex.join(command)) as client:
        yield client
