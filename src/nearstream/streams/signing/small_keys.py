"""Short keys of many payloads, in C if it is installed."""

import mmh3

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.native import fastest, native

SMALL_KEY_BYTES = 8


def small_keys_slowly(permutation: bytes, prefix: bytes, payloads: bytes, width: int) -> tuple[bytes, ...]:
    """Return what `small_keys` returns for a key with this permutation."""
    first, rest = prefix.translate(permutation), payloads.translate(permutation)
    whole = [first + rest[start : start + width] for start in range(0, len(rest), width)]
    return tuple([mmh3.mmh3_x64_128_digest(each, 0)[:SMALL_KEY_BYTES] for each in whole])


_small_keys = fastest(native.small_keys, small_keys_slowly)


def small_keys(key: HashKey, prefix: bytes, payloads: bytes, width: int) -> tuple[bytes, ...]:
    """Return the first 8 bytes of `HashKey.small_key` of each payload.

    Args:
        key: The key of the deployment.
        prefix: Put before each payload.
        payloads: Payloads of `width` bytes, one after the other.
        width: Bytes of a payload.
    """
    return _small_keys(key.permutation, prefix, payloads, width)
