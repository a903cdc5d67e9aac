"""A real worker that cannot bear one record, whose key ends with `bug`: its argument is the step, `sign` or `match`."""

import sys
from typing import Any

from schemas.record import Record
from workers import matching, signing
from workers.cli import main


def raising(step: Any) -> Any:  # noqa: ANN401 - a method of the step
    """The step with the bug."""

    def broken(self: Any, record: Record, *more: Any) -> Any:  # noqa: ANN401 - as the step
        if (record.key or b"").endswith(b"bug"):
            raise RuntimeError("the bug")
        return step(self, record, *more)

    return broken


if sys.argv[1] == "sign":
    signing.Signing._signed = raising(signing.Signing._signed)  # type: ignore[method-assign]
else:
    matching.Matching._arrival = raising(matching.Matching._arrival)  # type: ignore[method-assign]
sys.exit(main(["worker", "all"]))
