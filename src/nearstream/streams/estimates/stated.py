"""What documents may be compared, and what they are to each other by their names."""

from functools import lru_cache
from typing import Protocol

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.ingest.lineage import host_of

NO_TIE, ONE_LINEAGE, ONE_SITE = 0, 1, 2

_CACHED_HOSTS = 1024


class Stated(Protocol):
    """The fields that identify the document of a state, as `Signature` describes them."""

    @property
    def collection(self) -> str:
        """The tenant."""

    @property
    def id(self) -> str:
        """The id of the document."""

    @property
    def lineage(self) -> str | None:
        """What successive states of one thing share."""


def same_lineage(a: Stated, b: Stated) -> bool:
    """Return whether both are states of one document or of one lineage."""
    if a.collection != b.collection:
        return False
    return a.id == b.id or (bool(a.lineage) and a.lineage == b.lineage)


def tie(a: Stated, b: Stated) -> int:
    """Return what two documents are to each other by their names, whatever their texts.

    Returns:
        `ONE_LINEAGE` if they are states of one document or lineage, `ONE_SITE` if their lineages are different URLs of
        one host, else `NO_TIE`.
    """
    if same_lineage(a, b):
        return ONE_LINEAGE
    if a.lineage and b.lineage and a.collection == b.collection:
        host = _host_of(a.lineage)
        if host and host == _host_of(b.lineage):
            return ONE_SITE
    return NO_TIE


@lru_cache(maxsize=_CACHED_HOSTS)
def _host_of(lineage: str) -> str:
    return host_of(lineage)


def refuse_incomparable(a: Signature, b: Signature) -> None:
    """Refuse signatures that have nothing to compare.

    Raises:
        ValueError: The signatures are of two schemes or two collections, or a normal form is empty.
    """
    if a.scheme != b.scheme or a.collection != b.collection:
        raise ValueError(
            "two signatures of one scheme and one collection expected,"
            f" not of {a.scheme} in {a.collection} and {b.scheme} in {b.collection}"
        )
    if not (a.n_bytes and b.n_bytes):
        raise ValueError(f"normal forms of at least one byte expected, not of {a.n_bytes} and {b.n_bytes} bytes")
