"""Everything derived from the secret."""

from mmh3 import mmh3_x64_128_digest

from nearstream.streams.fingerprints.hashing import HashKey
from tests.support.collisions import colliding_blocks

KEY = HashKey.public()


def test_repr_hides_the_key() -> None:
    assert repr(KEY) == str(KEY) == "HashKey(0d3e89c8)"


def test_1024_payloads_of_one_mmh3_hash_have_different_small_keys() -> None:
    a, b = colliding_blocks()
    payloads = [b"".join(b if choice >> place & 1 else a for place in range(10)) for choice in range(1024)]
    assert len({mmh3_x64_128_digest(each, 7) for each in payloads}) == 1
    assert len({KEY.small_key(each) for each in payloads}) == 1024
    assert [KEY.small_key(b"p" + each)[:8] for each in payloads] == KEY.small_keys(
        b"p", b"".join(payloads), len(a) * 10
    )
    assert len({KEY.digest(each) for each in payloads}) == 1024
