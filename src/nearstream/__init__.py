"""Find duplicates, containments, new versions and rearrangements in a stream of documents.

Documents are compared by their signatures alone. A public name is imported when it is first used, so that a command
that does not sign starts without numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nearstream.schemas.document import Document
    from nearstream.schemas.events import (
        Containment,
        Event,
        ExactDuplicate,
        NearDuplicate,
        Overlap,
        Rearranged,
        Retraction,
        Version,
    )
    from nearstream.schemas.signature import Signature
    from nearstream.schemas.verdict import DocumentVerdict, FamilyRef
    from nearstream.streams.fingerprints.hashing import HashKey
    from nearstream.streams.index.contract import Index, IndexLimits
    from nearstream.streams.index.memory import MemoryIndex
    from nearstream.streams.matcher import Matched, Matcher
    from nearstream.streams.relations.thresholds import Thresholds
    from nearstream.streams.signing.scheme import Scheme, preset
    from nearstream.streams.signing.signer import Signer

__all__ = [
    "Containment",
    "Document",
    "DocumentVerdict",
    "Event",
    "ExactDuplicate",
    "FamilyRef",
    "HashKey",
    "Index",
    "IndexLimits",
    "Matched",
    "Matcher",
    "MemoryIndex",
    "NearDuplicate",
    "Overlap",
    "Rearranged",
    "Retraction",
    "Scheme",
    "Signature",
    "Signer",
    "Thresholds",
    "Version",
    "preset",
]

# The public names, by the module below `nearstream` that defines them.
_MODULES = {
    "schemas.document": ("Document",),
    "schemas.events": (
        *("Containment", "Event", "ExactDuplicate", "NearDuplicate"),
        *("Overlap", "Rearranged", "Retraction", "Version"),
    ),
    "schemas.signature": ("Signature",),
    "schemas.verdict": ("DocumentVerdict", "FamilyRef"),
    "streams.fingerprints.hashing": ("HashKey",),
    "streams.index.contract": ("Index", "IndexLimits"),
    "streams.index.memory": ("MemoryIndex",),
    "streams.matcher": ("Matched", "Matcher"),
    "streams.relations.thresholds": ("Thresholds",),
    "streams.signing.scheme": ("Scheme", "preset"),
    "streams.signing.signer": ("Signer",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name on first use.

    Raises:
        AttributeError: There is no public name like this.
    """
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'nearstream' has no attribute {name!r}")
    return getattr(import_module(f"nearstream.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
