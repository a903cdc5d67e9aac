"""Settlements of documents that are not compared."""

from nearstream.streams.counterpart import own_family
from nearstream.streams.index.family import Pair, Sending, Settlement
from nearstream.streams.store.limits import Admission, Admitted


def settlement(one: Admission, answer: Admitted) -> Settlement | None:
    """Return the settlement of a document that joins the family it is presumed to belong to.

    Its best candidate counts as its near-duplicate. None: there is nothing to settle.
    """
    if one.signature is None or not (answer.candidates or answer.presumed or answer.may_change):
        return None
    by_number = {candidate.number: candidate for candidate in answer.candidates}
    joined = by_number.get(answer.presumed)
    family = own_family(0, joined.signature if joined else one.signature)
    pairs = [Pair("near_duplicate", Sending.ONCE, best.number, best) for best in answer.candidates[:1]]
    return Settlement(
        answer.number,
        one.signature,
        answer.presumed,
        joined is not None and joined.by_digest,
        False,
        family.family_id,
        family.first_seen_ms,
        tuple(pairs),
    )
