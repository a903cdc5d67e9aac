"""A fuzzy_check of rspamd with a storage of its own, on loopback."""

from pathlib import Path

from tests.devstack.rspamd import rspamd_server
from tests.devstack.server import LocalServer, free_ports

_CONFIGURATION = """\
options {
  filters = "fuzzy_check"; url_tld = "$RUNDIR/tld.dat"; tempdir = "$RUNDIR";
  control_socket = "$RUNDIR/control.sock mode=0600"; lang_detection { languages = "$SHAREDIR/languages"; }
  dns { nameserver = ["127.0.0.1:1"]; timeout = 0.1s; retransmits = 1; }
}
logging { type = "console"; level = "info"; }
modules { path = []; }
worker "normal" { bind_socket = "$ADDRESS"; count = 1; hs_cache_dir = "$RUNDIR"; }
worker "controller" { bind_socket = "$CONTROLLER"; count = 1; secure_ip = ["127.0.0.1"]; }
worker "fuzzy" {
  bind_socket = "$STORAGE"; count = 1; backend = "sqlite"; hashfile = "$RUNDIR/fuzzy.db"; expire = 90d; sync = 1s;
  allow_update = ["127.0.0.1"];
}
fuzzy_check {
  min_bytes = 300; timeout = 2s; retransmits = 1;
  rule "local" {
    algorithm = "mumhash"; servers = "$STORAGE"; symbol = "FUZZY_UNKNOWN"; mime_types = ["*"]; max_score = 20.0;
    read_only = no; skip_unknown = yes; short_text_direct_hash = true; min_length = 64;
    fuzzy_map = { FUZZY_DENIED { max_score = 20.0; flag = 11; } }
  }
}
group "fuzzy" { symbols { "FUZZY_DENIED" { weight = 12.0; } } }
"""


def fuzzy_server(folder: Path) -> tuple[LocalServer, str]:
    """Return an rspamd that asks its storage, not started yet, and the address that learns."""
    controller, storage = (f"127.0.0.1:{port}" for port in free_ports(2))
    written = _CONFIGURATION.replace("$CONTROLLER", controller).replace("$STORAGE", storage)
    return rspamd_server(folder, "", "", written), controller
