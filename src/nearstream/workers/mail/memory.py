"""The memory that all messages share which are being received."""

from dataclasses import dataclass

MEMORY_BYTES = 128 * 1024 * 1024


@dataclass
class Memory:
    """How much of it is left, in bytes."""

    left: int = MEMORY_BYTES

    def take(self, size: int, keep: int = 0) -> bool:
        """Take some if as much as `keep` remains for others, and return whether there was enough."""
        enough = size + keep <= self.left
        if enough:
            self.left -= size
        return enough

    def give_back(self, size: int) -> None:
        """Give back what was taken."""
        self.left += size
