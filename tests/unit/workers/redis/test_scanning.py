"""Samples of the keys of an index."""

from nearstream.workers.redis.reading.scanning import KeySample

KEYS = [b"key %d" % at for at in range(1_000)]


def sample_of(keys: list[bytes], most: int) -> KeySample:
    sample = KeySample(most)
    for key in keys:
        sample.add(key)
    return sample


def test_few_keys_are_all_in_the_sample() -> None:
    sample = sample_of([*KEYS[:20], *KEYS[5:9]], 50)
    assert (sample.count, sorted(sample.keys)) == (20, sorted(KEYS[:20]))
    assert sample.of_all(7) == 7


def test_a_sample_of_many_keys_does_not_depend_on_their_order() -> None:
    sample = sample_of(KEYS, 50)
    assert (sample.count, len(set(sample.keys))) == (1_000, 50)
    assert sorted(sample_of(KEYS[::-1], 50).keys) == sorted(sample.keys)
    assert sample.of_all(150) == 3_000
    assert max(sample.keys.count(key) for key in sample.keys) == 1


def test_a_sample_without_keys_stands_for_nothing() -> None:
    assert (KeySample(5).keys, KeySample(5).of_all(0)) == ([], 0)
