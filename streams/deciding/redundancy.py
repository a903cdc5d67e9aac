"""Whether all of a document is in an earlier one."""

from msgspec import UnsetType

from nearstream.schemas.verdict import DocumentVerdict

_DISTANCE_MAX = 40  # characters, the upper end of the band: a sentence has more


def is_redundant(verdict: DocumentVerdict, *, of_own_site: bool) -> bool:
    """Return whether all of a document is in the earlier one that its verdict names.

    An exact copy is. A near-duplicate is if so little differs that it holds no sentence of its own. Within a site the
    estimate is not believed, because a frame may be most of what two pages have.

    Args:
        verdict: About the document.
        of_own_site: Whether both are pages of one site.
    """
    if verdict.verdict == "exact_duplicate":
        return True
    if verdict.verdict != "near_duplicate" or of_own_site or isinstance(verdict.distance, UnsetType):
        return False
    return verdict.distance.high <= _DISTANCE_MAX
