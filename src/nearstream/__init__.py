"""Find duplicates, containments, new versions and rearrangements in a stream of documents.

Documents are compared by their signatures alone. A public name is imported when it is first used, so that a command
that does not sign starts without numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

# The public names, by the module below `nearstream` that defines them.
_MODULES = {
    "schemas.documents.document": ("Document",),
    "schemas.verdicts.events": (
        *("Containment", "Event", "ExactDuplicate", "NearDuplicate"),
        *("Overlap", "Rearranged", "Retraction", "Version"),
    ),
    "schemas.documents.signature": ("Signature",),
    "schemas.verdicts.verdict": ("DocumentVerdict", "FamilyRef"),
    "streams.matching.arriving": ("Arrival",),
    "streams.fingerprints.hashing": ("HashKey",),
    "streams.fingerprints.sent_places": ("sent_places",),
    "streams.matching.matcher": ("Matcher",),
    "streams.relations.thresholds": ("Thresholds",),
    "streams.signing.scheme": ("Scheme", "preset"),
    "streams.signing.signer": ("Signer",),
    "streams.store.limits": ("IndexLimits",),
    "streams.store.store": ("Store", "local_store"),
    "streams.matching.telling": ("Matched",),
    "workers.sqlite.file": ("IndexFile", "open_store"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
if TYPE_CHECKING:
    from nearstream.schemas.documents.document import Document as Document
    from nearstream.schemas.documents.signature import Signature as Signature
    from nearstream.schemas.verdicts.events import Containment as Containment
    from nearstream.schemas.verdicts.events import Event as Event
    from nearstream.schemas.verdicts.events import ExactDuplicate as ExactDuplicate
    from nearstream.schemas.verdicts.events import NearDuplicate as NearDuplicate
    from nearstream.schemas.verdicts.events import Overlap as Overlap
    from nearstream.schemas.verdicts.events import Rearranged as Rearranged
    from nearstream.schemas.verdicts.events import Retraction as Retraction
    from nearstream.schemas.verdicts.events import Version as Version
    from nearstream.schemas.verdicts.verdict import DocumentVerdict as DocumentVerdict
    from nearstream.schemas.verdicts.verdict import FamilyRef as FamilyRef
    from nearstream.streams.fingerprints.hashing import HashKey as HashKey
    from nearstream.streams.fingerprints.sent_places import sent_places as sent_places
    from nearstream.streams.matching.arriving import Arrival as Arrival
    from nearstream.streams.matching.matcher import Matcher as Matcher
    from nearstream.streams.matching.telling import Matched as Matched
    from nearstream.streams.relations.thresholds import Thresholds as Thresholds
    from nearstream.streams.signing.scheme import Scheme as Scheme
    from nearstream.streams.signing.scheme import preset as preset
    from nearstream.streams.signing.signer import Signer as Signer
    from nearstream.streams.store.limits import IndexLimits as IndexLimits
    from nearstream.streams.store.store import Store as Store
    from nearstream.streams.store.store import local_store as local_store
    from nearstream.workers.sqlite.file import IndexFile as IndexFile
    from nearstream.workers.sqlite.file import open_store as open_store
else:  # because checkers of types read no list that is computed
    __all__ = list(_MODULE_OF)


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
    return list(_MODULE_OF)
