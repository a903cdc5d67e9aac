"""Whether all of a document is in an earlier one."""

from nearstream.schemas.verdict import DocumentVerdict


def is_redundant(verdict: DocumentVerdict) -> bool:
    """Return whether all of a document is in the earlier one that its verdict names.

    A verdict without an LD signature does not say it, but knows equal texts.
    """
    return verdict.verdict == "exact_duplicate" or verdict.redundant is True
