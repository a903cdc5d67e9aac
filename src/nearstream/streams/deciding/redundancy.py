"""Whether all of a document is in an earlier one."""

from msgspec import UNSET

from nearstream.schemas.verdicts.verdict import DocumentVerdict


def is_redundant(verdict: DocumentVerdict) -> bool:
    """Return whether all of a document is in the earlier one that its verdict names.

    Verdicts of former releases do not say it, but know equal texts.
    """
    return verdict.redundant is True or (verdict.redundant is UNSET and verdict.verdict == "exact_duplicate")
