"""Mails of one domain that share only what is below their texts, such as a notice."""

import numpy as np

from nearstream.schemas.documents.document import SENDER_DOMAIN_LABEL
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.alignment import Side
from nearstream.streams.estimates.pair import pair
from nearstream.streams.store.record import Comparable, signature_of

_TEXT_BYTES_MIN = 48  # of each text above the common end, about 9 words
_TEXT_SYMBOLS_MIN = 2
_END_BYTES_MAX = 1_536  # of a notice, about 250 words. A longer end is a text below two headings.


def have_other_texts_above(one: Signature, other: Comparable) -> bool:
    """Return whether two mails of one domain share nothing above a common end.

    Each has a text of 48 bytes or more above that end, of which no sampled window is in the other mail. The end has at
    most 1.5 KiB. Nothing has to be learned for this, so it holds for the first two mails of an office too.
    """
    domain = one.labels.get(SENDER_DOMAIN_LABEL)
    if domain is None or domain != other.labels.get(SENDER_DOMAIN_LABEL):
        return False
    both = pair(one, signature_of(other))
    first, second = both.shorter_side, both.longer_side
    return _has_text_above(first, second) and _has_text_above(second, first)


def _has_text_above(text: Side, other: Side) -> bool:
    starts, symbols = text.windows[:, :-1]
    is_common = np.isin(symbols, other.windows[1, :-1])
    above = int(np.argmax(is_common))
    if not is_common.any() or above < _TEXT_SYMBOLS_MIN:
        return False
    return bool(starts[above] >= _TEXT_BYTES_MIN and text.n_bytes - starts[above] <= _END_BYTES_MAX)
