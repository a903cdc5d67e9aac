"""The C extension, which computes signatures, keys and estimates."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NewType, Protocol, cast

INTERFACE = 16  # raised together with INTERFACE of module.c whenever a function changes
_LIBRARY = "nearstream.streams.native._native"
_REMEDY = "install nearstream anew, by `pip install -e .` in a checkout, or from a wheel"

Context = NewType("Context", object)
"""A scheme and its key, prepared once for signing."""
UnicodeTables = NewType("UnicodeTables", object)
"""The tables of Unicode, prepared once for signing."""

Content = tuple[int, int, int, int, bool, bytes, int, bytes, bytes, bytes]
"""The fields of `Signature` from `n_bytes` to `anchors`, in this order."""
Signed = tuple[bytes, bytes, Content]
"""`digest`, `raw_digest`, and the content."""

TextFields = tuple[bytes, int, int, int, int, bool, bytes, int, bytes, bytes]
"""`digest`, `n_bytes`, `characters`, `words`, `shingles`, `spaceless`, `sketch`, `rate`, `ld` and `gaps`."""

PackedText = tuple[bytes, bytes, int]
"""The first 8 bytes of the digest, a record of the index, and where its text part begins."""


class Native(Protocol):
    """The functions of module.c and its headers."""

    def context(self, packed: bytes, /) -> Context:
        """Prepare a scheme and its key."""

    def unicode(self, packed: bytes, /) -> UnicodeTables:
        """Prepare the tables of Unicode."""

    def sign(self, context: Context, unicode: UnicodeTables | None, text: bytes, max_bytes: int, /) -> Signed | None:
        """Sign a text in UTF-8, which may contain surrogates.

        Returns None if the normal form has more than `max_bytes` bytes. Without tables the text must be ASCII.
        """

    def normal_form(
        self, unicode: UnicodeTables | None, text: bytes, mark_run: int, spaceless_share: int, /
    ) -> tuple[bytes, int, bool]:
        """Return the normal form of a text, its code points, and whether it is spaceless.

        Without tables the text must be ASCII.
        """

    def signs(self, text: bytes, /) -> bytes:
        """Return the signs of a text in UTF-8 that mean something (see `signing/signer.py`)."""

    def pack_pairs(self, ld: bytes, gaps: bytes, symbol_bits: int, kept_bits: int, low_bits: int, /) -> bytes | None:
        """Pack LD symbols and gaps into few bits (see ld_compact.h)."""

    def unpack_text(self, packed: bytes, start: int, /) -> TextFields:
        """Return the text part of a record of the index, which begins at `start` (see `store/record.py`)."""

    def patch(self, other: bytes, text: bytes, /) -> bytes:
        """Return what turns one text part into another (see `store/record.py`)."""

    def shortlist(self, found: Sequence[tuple[bytes, bytes]], numbers: tuple[int, ...], /) -> tuple[bytes, int, int]:
        """Return who shares most keys with a document, as rows in `tally.ROW`.

        Beside them are the number of full buckets, and whether there are more. The numbers are the fields of `Tallying`
        in tally.h.
        """

    def compare(
        self,
        arriving: TextFields,
        others: tuple[TextFields | PackedText, ...],
        ties: bytes,
        reach: Callable[[int], bytes],
        costs: bytes,
        /,
    ) -> bytes:
        """Compare a text with others and return packed estimates.

        `estimates/comparing.py` says what ties, the reach of blocks at a rate and the costs of unrelated text are.
        """

    def common_text(
        self, one: TextFields, other: TextFields | PackedText, same_lineage: bool, reach: Callable[[int], bytes], /
    ) -> tuple[bytes, bytes, bytes, bytes]:
        """Return where the common text of two texts lies (see `estimates/passages.py`).

        These are the passages in order, those in another order, the best segment if there is one, and the changes. Each
        takes four int64: its start and its end in the shorter text, then those in the longer one.
        """

    def share_only_an_end(self, one: TextFields, other: TextFields | PackedText, /) -> bool:
        """Return whether two texts share nothing above a common end (see `relations/verdict.py`)."""

    def cover(
        self, arriving: TextFields, others: tuple[TextFields | PackedText, ...], reach: Callable[[int], bytes], /
    ) -> tuple[bytes, ...]:
        """Return which parts of a text each of others has (see `estimates/passages.py`).

        Each is packed as the rate in int64, then start and end of each part in float64.
        """


def _load() -> Native:
    try:
        library = import_module(_LIBRARY)
    except ImportError as error:
        raise ImportError(f"{_LIBRARY} cannot be loaded ({error}): {_REMEDY}") from None
    if getattr(library, "INTERFACE", None) != INTERFACE:
        raise ImportError(f"{_LIBRARY} was built from other sources: {_REMEDY}")
    return cast(Native, library)


native = _load()
"""The C extension."""
