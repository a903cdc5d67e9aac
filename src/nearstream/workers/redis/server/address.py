"""The server, namespace, scheme and key of an index."""

from dataclasses import dataclass, field
from hashlib import blake2b

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Shape
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.partitioning import wrong_slots
from nearstream.workers.redis.server.layout import KeyKind, tag_of

_LIMITS = IndexLimits()
_SCHEME_BYTES = 4


@dataclass(frozen=True)
class IndexAddress:
    """The server of an index, its namespace, and its scheme."""

    # `redis://` or `rediss://`, or an address of sentinels. For a cluster, the URL of any node.
    url: str = field(repr=False)  # it may hold a password
    namespace: str  # first part of every key
    scheme: str  # Name of the scheme, which names the hash key too. Its hash is the second part of every key.
    limits: IndexLimits = _LIMITS  # bounds of the index
    ca_path: str | None = None  # Certificates that `rediss://` trusts. None: those of the system.
    slots: int = 1  # count of the slots over which the index is spread
    replicas: int = 0  # how many replicas of each server have to confirm what is decided
    cluster: bool = False  # the server is a node of a cluster
    beside: bool = False  # the scheme may exist beside the active one
    look_up_seconds: float = 0.15  # how long the answer to a question that changes nothing may take

    def shape(self, partitions: int) -> Shape:
        """Return how the index is spread, given the count of the partitions of `signatures`."""
        if wrong := wrong_slots(self.slots, partitions):
            raise SettingsError(wrong)
        return Shape(self.slots, partitions)

    @property
    def prefix(self) -> bytes:
        """What the hash tags of all slots begin with."""
        # Each chunk repeats the tag. With the whole name of the scheme, its key would take twice the memory.
        scheme = blake2b(self.scheme.encode(), digest_size=_SCHEME_BYTES).hexdigest()
        return f"{{{self.namespace}:{scheme}:".encode()

    def tag(self, slot: int) -> bytes:
        """Return the hash tag of a slot, with which all its keys begin."""
        return tag_of(self.prefix, slot)

    @property
    def key(self) -> bytes:
        """The key of the facts of the first slot."""
        return self.tag(0) + KeyKind.FACTS
