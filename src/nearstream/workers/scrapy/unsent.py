"""A file for pages that could not be sent, which `nearstream produce` sends later."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

FILE_MAX_BYTES = 1024**3


@dataclass(frozen=True)
class UnsentFile:
    """A file with one document as JSON on each line.

    Attributes:
        path: Its path. It is made with the first page.
        max_bytes: The most bytes that it may have.
    """

    path: Path
    max_bytes: int = FILE_MAX_BYTES

    def add(self, fields: dict[str, Any]) -> bool:
        """Add the fields of a document. Return whether there was room for it.

        Raises:
            OSError: The file cannot be written.
        """
        line = msgspec.json.encode(fields) + b"\n"
        with self.path.open("ab") as file:
            if file.tell() + len(line) > self.max_bytes:
                return False
            file.write(line)
        return True
