"""Where an index stands, whose it is, how it is laid out."""

from dataclasses import dataclass
from hashlib import blake2b

from streams.index import IndexLimits

_LIMITS = IndexLimits()
_SCHEME_BYTES = 4


@dataclass(frozen=True)
class Connection:
    """How a server is reached.

    Attributes:
        url: `redis://` or `rediss://`; of a cluster any of its nodes.
        ca_path: Certificates that `rediss://` trusts; None: the system's.
        cluster: The server is a node of a cluster.
    """

    url: str
    ca_path: str | None
    cluster: bool


@dataclass(frozen=True)
class IndexAddress:
    """Where an index stands, and whose it is.

    Attributes:
        url: `redis://` or `rediss://`.
        namespace: First part of every key.
        scheme: Name of the scheme, whose hash is the second part of every key.
        key_fingerprint: Of the deployment's key; another one is refused.
        limits: Bounds of the index.
        part: Third part of every key, of several parts the first; parts do not meet.
        ca_path: Certificates that `rediss://` trusts; None: the system's.
        parts: Over how many parts, each with a slot of its own, the collections are spread.
        cluster: The server is a node of a cluster.
        beside: The scheme may stand beside the active one.
    """

    url: str
    namespace: str
    scheme: str
    key_fingerprint: str
    limits: IndexLimits = _LIMITS
    part: int = 0
    ca_path: str | None = None
    parts: int = 1
    cluster: bool = False
    beside: bool = False

    @property
    def connection(self) -> Connection:
        """How its server is reached."""
        return Connection(self.url, self.ca_path, self.cluster)

    @property
    def key(self) -> bytes:
        """The key of the first part's own facts; it holds the hash tag that all keys of the part share."""
        return self.key_of(0)

    def key_of(self, index: int) -> bytes:
        """The same of another part, counted from 0."""
        return f"{self._tag(str(self.part + index))}m".encode()

    @property
    def every_tag(self) -> str:
        """The pattern of the hash tags of all parts of the scheme."""
        return self._tag("*")

    def _tag(self, part: str) -> str:
        # Each chunk repeats the tag: with the whole name of the scheme its key would take twice the memory.
        scheme = blake2b(self.scheme.encode(), digest_size=_SCHEME_BYTES).hexdigest()
        return f"{{{self.namespace}:{scheme}:{part}}}"


@dataclass(frozen=True)
class Layout:
    """How keys are spread over the store.

    Attributes:
        epoch: Names this filling of the index; salts the hashes of document keys.
        digests, lineages, bands, anchors, registry: Counts of chunks.
    """

    epoch: bytes
    digests: int
    lineages: int
    bands: int
    anchors: int
    registry: int
