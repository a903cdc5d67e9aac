"""C and its twins, for tests that must hold for both."""

import os

import pytest

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.native import INSTALLED
from nearstream.streams.signing.native_backend import NativeSigning
from nearstream.streams.signing.numpy_backend import Implementation, NumpySigning
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.streams.signing.signer import Signer

NAMES = ("numpy", "native")
PUBLIC = HashKey.public()

_IS_SKIPPED, _REASON = not INSTALLED and "CI" not in os.environ, "the C twin is not built: pip install -e ."
needs_native = pytest.mark.skipif(_IS_SKIPPED, reason=_REASON)
each_implementation = pytest.mark.parametrize("implementation", NAMES)


def implementation_of(name: str, label: str = "standard", key: HashKey = PUBLIC) -> Implementation:
    """Return the implementation of this name for a preset.

    Without the C twin the test is skipped, or fails if `CI` is set.
    """
    return computing_of(name, preset(label, key), key)


def computing_of(name: str, scheme: Scheme, key: HashKey = PUBLIC) -> Implementation:
    """Return the implementation of this name for any scheme, like `implementation_of`."""
    if name == "numpy":
        return NumpySigning(scheme, key)
    if _IS_SKIPPED:
        pytest.skip(_REASON)
    return NativeSigning(scheme, key)


def signer_of(name: str, label: str = "standard", key: HashKey = PUBLIC) -> Signer:
    """Return a signer that uses the implementation of this name."""
    return Signer(preset(label, key), key, computing=implementation_of(name, label, key))
