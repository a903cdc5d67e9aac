"""Mails of one domain that share only what is below their texts, such as a notice."""

from nearstream.schemas.documents.document import SENDER_DOMAIN_LABEL
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import fields_of, text_of
from nearstream.streams.native import native
from nearstream.streams.store.record import Comparable


def have_other_texts_above(one: Signature, other: Comparable) -> bool:
    """Return whether two mails of one domain share nothing above a common end.

    Each has a text of 48 bytes or more above that end, of which no sampled window is in the other mail. The end has at
    most 1.5 KiB. Nothing has to be learned for this, so it holds for the first two mails of an office too.
    """
    domain = one.labels.get(SENDER_DOMAIN_LABEL)
    if domain is None or domain != other.labels.get(SENDER_DOMAIN_LABEL):
        return False
    return native.share_only_an_end(fields_of(one), text_of(other))
