"""A worker that signs and compares with numpy, as where nearstream was built without a C compiler."""

import sys

from nearstream.streams import native

native.INSTALLED = False  # before other modules choose what they use

from nearstream.workers.cli.main import main  # noqa: E402

sys.exit(main(["worker", *sys.argv[1:]]))
