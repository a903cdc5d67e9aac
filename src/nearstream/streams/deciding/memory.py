"""What is kept for decisions, in dictionaries."""

from dataclasses import dataclass, field

from nearstream.streams.deciding.states import HostState, PageState

_Key = tuple[str, str]


@dataclass(frozen=True)
class MemoryDecisions:
    """Keeps what decisions need in the memory of a process, without an end."""

    states: dict[_Key, PageState] = field(default_factory=dict)
    aliases: dict[_Key, str] = field(default_factory=dict)
    hosts: dict[_Key, HostState] = field(default_factory=dict)
    folders: dict[_Key, bytes] = field(default_factory=dict)

    def copy(self) -> "MemoryDecisions":
        """Return what is known, which may change by itself."""
        return MemoryDecisions(dict(self.states), dict(self.aliases), dict(self.hosts), dict(self.folders))

    async def read_state(self, collection: str, name: str) -> PageState | None:
        """Return the state of a page, or None if it has none."""
        return self.states.get((collection, self.aliases.get((collection, name), name)))

    async def write(self, state: PageState) -> None:
        """Store the state of a page, in place of the one before."""
        self.states[state.collection, state.name] = state
        self.aliases.pop((state.collection, state.name), None)

    async def write_alias(self, collection: str, alias: str, name: str) -> None:
        """Give a page another name, in place of the state that had it."""
        self.states.pop((collection, alias), None)
        self.aliases[collection, alias] = name

    async def forget(self, collection: str, name: str) -> None:
        """Remove the state of a page, or one of its other names."""
        self.states.pop((collection, name), None)
        self.aliases.pop((collection, name), None)
