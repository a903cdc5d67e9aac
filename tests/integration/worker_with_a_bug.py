"""A real worker that fails on a record whose key ends with `bug`.

Its argument is the step that fails, `sign` or `match`.
"""

import sys
from typing import Any

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.workers.cli.main import main
from nearstream.workers.pipeline import match, sign


def raising(step: Any) -> Any:  # noqa: ANN401 - a function of the step
    """Return the step with the bug."""

    def broken(*arguments: Any) -> Any:  # noqa: ANN401 - like the step
        record = next(each for each in arguments if isinstance(each, ConsumerRecord))
        if (record.key or b"").endswith(b"bug"):
            raise RuntimeError("the bug")
        return step(*arguments)

    return broken


if sys.argv[1] == "sign":
    sign.Signing._signed = raising(sign.Signing._signed)  # type: ignore[method-assign]
else:
    match.arrival_of = raising(match.arrival_of)
sys.exit(main(["worker", "all"]))
