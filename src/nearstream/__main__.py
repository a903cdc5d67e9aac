"""`python -m nearstream` is the command `nearstream`."""

import sys

from nearstream.workers.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
