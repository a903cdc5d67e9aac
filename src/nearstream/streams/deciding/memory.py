"""The states of pages in dictionaries."""

from dataclasses import dataclass, field

from nearstream.streams.deciding.states import FOLLOWERS_MAX, HostErrors, PageState
from nearstream.streams.estimates.frames import Frame

_Key = tuple[str, str]


@dataclass(frozen=True)
class MemoryDecisions:
    """What `DecisionStore` keeps on a server, in dictionaries by collection and name."""

    states: dict[_Key, PageState] = field(default_factory=dict)
    aliases: dict[_Key, str] = field(default_factory=dict)
    frames: dict[_Key, Frame] = field(default_factory=dict)
    errors: dict[_Key, HostErrors] = field(default_factory=dict)
    listed: dict[_Key, dict[str, None]] = field(default_factory=dict)

    async def read_state(self, collection: str, name: str) -> PageState | None:
        """Return the state of a page, or None if it has none."""
        return self.states.get((collection, self.aliases.get((collection, name), name)))

    async def write(self, state: PageState) -> None:
        """Store the state of a page, in place of the one before."""
        key = state.decision.collection, state.decision.lineage
        self.states[key] = state
        self.aliases.pop(key, None)

    async def write_alias(self, collection: str, alias: str, name: str) -> None:
        """Give a page another name."""
        self.states.pop((collection, alias), None)
        self.aliases[collection, alias] = name

    async def forget(self, collection: str, name: str) -> None:
        """Remove the state of a page."""
        self.states.pop((collection, name), None)

    async def read_frame(self, collection: str, host: str) -> Frame:
        """Return what is known of the frame of a host."""
        return self.frames.get((collection, host), {})

    async def write_frame(self, collection: str, host: str, frame: Frame) -> None:
        """Store what is known of the frame of a host."""
        self.frames[collection, host] = frame

    async def read_errors(self, collection: str, host: str) -> HostErrors:
        """Return what is known of the error pages of a host."""
        return self.errors.get((collection, host), HostErrors())

    async def write_errors(self, collection: str, host: str, errors: HostErrors) -> None:
        """Store what is known of the error pages of a host."""
        self.errors[collection, host] = errors

    async def follow(self, collection: str, canonical: str, follower: str) -> bool:
        """List a page that rests on another one."""
        listed = self.listed.setdefault((collection, canonical), {})
        if follower not in listed and len(listed) >= FOLLOWERS_MAX:
            return False
        listed[follower] = None
        return True

    async def followers(self, collection: str, canonical: str) -> list[str]:
        """Return the pages that rest on a page."""
        return list(self.listed.get((collection, canonical), ()))

    async def leave(self, collection: str, canonical: str, follower: str) -> None:
        """Take a page from the list of those that rest on another one."""
        self.listed.get((collection, canonical), {}).pop(follower, None)
