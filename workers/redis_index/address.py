"""The server, namespace, scheme and key of an index."""

from dataclasses import dataclass, field
from hashlib import blake2b

from nearstream.streams.index.contract import IndexLimits
from nearstream.workers.redis_index.layout import KeyKind

_LIMITS = IndexLimits()
_SCHEME_BYTES = 4


@dataclass(frozen=True)
class Connection:
    """How to connect to a server.

    Attributes:
        url: `redis://` or `rediss://`. For a cluster, the URL of any node.
        ca_path: Certificates that `rediss://` trusts. None: those of the system.
        cluster: The server is a node of a cluster.
    """

    url: str = field(repr=False)  # it may hold a password
    ca_path: str | None
    cluster: bool


@dataclass(frozen=True)
class IndexAddress:
    """The server of an index, its namespace, and its scheme.

    Attributes:
        url: `redis://` or `rediss://`.
        namespace: First part of every key.
        scheme: Name of the scheme. Its hash is the second part of every key.
        key_fingerprint: Fingerprint of the deployment's hash key. Another one is refused.
        limits: Bounds of the index.
        shard: Number of the first shard. The number of a shard is the third part of its keys, so shards share no key.
        ca_path: Certificates that `rediss://` trusts. None: those of the system.
        shards: Count of shards, each in one slot, over which the collections are spread.
        cluster: The server is a node of a cluster.
        beside: The scheme may exist beside the active one.
        look_up_seconds: How long the answer to a question that changes nothing may take.
    """

    url: str = field(repr=False)  # it may hold a password
    namespace: str
    scheme: str
    key_fingerprint: str
    limits: IndexLimits = _LIMITS
    shard: int = 0
    ca_path: str | None = None
    shards: int = 1
    cluster: bool = False
    beside: bool = False
    look_up_seconds: float = 0.15

    @property
    def connection(self) -> Connection:
        """How to connect to its server."""
        return Connection(self.url, self.ca_path, self.cluster)

    @property
    def key(self) -> bytes:
        """The key of the facts of the first shard."""
        return self.key_of(0)

    def key_of(self, index: int) -> bytes:
        """Return the key of the facts of a shard, counted from 0.

        It contains the hash tag that all keys of the shard begin with.
        """
        return self._tag(str(self.shard + index)).encode() + KeyKind.FACTS

    @property
    def every_tag(self) -> str:
        """The pattern of the hash tags of all shards of the scheme."""
        return self._tag("*")

    def _tag(self, shard: str) -> str:
        # Each chunk repeats the tag. With the whole name of the scheme, its key would take twice the memory.
        scheme = blake2b(self.scheme.encode(), digest_size=_SCHEME_BYTES).hexdigest()
        return f"{{{self.namespace}:{scheme}:{shard}}}"
