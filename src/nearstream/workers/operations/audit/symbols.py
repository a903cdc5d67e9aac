"""Measure how much the LD symbols of a running deployment say, in bits."""

from contextlib import aclosing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.entropy import corrected_entropy
from nearstream.streams.fingerprints.ld import LdSignature, symbol_bits, view
from nearstream.workers.operations.audit.window import Window

SYMBOLS_MAX = 100_000  # distinct symbols, few of the 2^19 that there are, because all of them would be even
SYMBOLS_MIN = 2_000
PART_BITS = 8
ALARM_BITS = 0.2


@dataclass(frozen=True)
class SymbolEntropy:
    """The entropy of the symbols in a window.

    Attributes:
        signatures: Signatures that were read.
        symbols: Distinct symbols among them.
        low_bits: Entropy of their lowest 8 bits. None: too few symbols.
        high_bits: Entropy of their highest 8 bits. None: too few symbols.
    """

    signatures: int
    symbols: int
    low_bits: float | None = None
    high_bits: float | None = None

    @property
    def is_alarming(self) -> bool:
        """Whether a part has .2 bits or more less than its 8 bits can hold."""
        return any(bits is not None and bits < PART_BITS - ALARM_BITS for bits in (self.low_bits, self.high_bits))


async def audit_symbols(window: Window) -> SymbolEntropy:
    """Measure the entropy of the first `SYMBOLS_MAX` distinct symbols of a window.

    A symbol counts once, however many texts have it. It has too many values to measure its entropy as a whole, so its
    lowest and highest bits are measured apart.

    Raises:
        KafkaUnreachableError: No broker answered in time.
        SettingsError: The topic does not exist.
    """
    found: dict[int, None] = {}
    signatures, width = 0, 0
    async with aclosing(window.signatures()) as arrivals:
        async for arrival in arrivals:
            signature = arrival.signature
            if signature is None or not signature.ld:
                continue
            signatures, width = signatures + 1, symbol_bits(signature)
            found.update(dict.fromkeys(_symbols(signature, width).tolist()))
            if len(found) >= SYMBOLS_MAX:
                break
    return measure(np.array([*found], np.uint32), width, signatures)


def measure(symbols: NDArray[np.uint32], width: int, signatures: int) -> SymbolEntropy:
    """Return the entropy of the parts of distinct symbols.

    Args:
        symbols: The symbols.
        width: Bits of a symbol.
        signatures: Signatures that they are from.
    """
    if symbols.size < SYMBOLS_MIN:
        return SymbolEntropy(signatures, symbols.size)
    parts = symbols & 0xFF, symbols >> (width - PART_BITS)
    low, high = (corrected_entropy(part.tolist()) for part in parts)
    return SymbolEntropy(signatures, symbols.size, low, high)


def _symbols(signature: Signature, width: int) -> NDArray[np.uint32]:
    return view(LdSignature(signature.rate, signature.ld, signature.gaps), signature.rate, width).symbols
