"""Both ways of signing, for tests that must hold for each."""

import os

import pytest

from streams.content import Implementation, NumpySigning
from streams.hashing import HashKey
from streams.scheme import Scheme, preset
from streams.signer import Signer

NAMES = ("numpy", "native")
PUBLIC = HashKey.public()

each_implementation = pytest.mark.parametrize("implementation", NAMES)


def implementation_of(name: str, label: str = "standard", key: HashKey = PUBLIC) -> Implementation:
    """One of both; without the C twin the test is skipped, and fails where `CI` is set."""
    return computing_of(name, preset(label, key), key)


def computing_of(name: str, scheme: Scheme, key: HashKey = PUBLIC) -> Implementation:
    """The same for any scheme."""
    if name == "numpy":
        return NumpySigning(scheme, key)
    try:
        from streams.native import NativeSigning
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip("the C twin is not built: pip install -e .")
    return NativeSigning(scheme, key)


def signer_of(name: str, label: str = "standard", key: HashKey = PUBLIC) -> Signer:
    """A signer that computes in this way."""
    return Signer(preset(label, key), key, computing=implementation_of(name, label, key))
