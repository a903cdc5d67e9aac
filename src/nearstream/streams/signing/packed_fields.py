"""Check the byte fields of a signature, and shorten them as an index keeps them.

C does this if it is installed, else numpy, which is loaded only then.
"""

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import KEPT_SYMBOL_BITS, SPLIT_SYMBOL_BITS, WORD_SYMBOL_BITS
from nearstream.streams.native import native, required


def _kept_parts(signature: Signature) -> tuple[bytes, bytes]:
    stored = SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS
    return required().kept_parts(signature.sketch, signature.ld, stored, KEPT_SYMBOL_BITS[stored])


if native:
    words_end, ascends, kept_parts = native.words_end, native.ascends, _kept_parts
else:
    from nearstream.streams.signing import packed_fields_numpy as twin

    words_end, ascends, kept_parts = twin.words_end, twin.ascends, twin.kept_parts
