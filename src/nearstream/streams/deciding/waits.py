"""How long a page may wait, by its own fetches and those of its folder.

A page is taken to change at a constant rate, one of 20. Each of its latest fetches says how likely each rate is. What
pages of its folder, and of its host, have shown says how common each rate is there.
"""

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_RATES = 1 / (0.75 * 1.5 ** np.arange(22))  # changes an hour, from one in 45 minutes to one in 5 months
_AGES = np.geomspace(0.25, 168, 96)  # hours
_FRESH = np.exp(-np.outer(_AGES, _RATES))  # by age and rate the share of pages that have not changed yet
_FLAT = np.full(len(_RATES), 1 / len(_RATES))
OBSERVATIONS = 12  # the latest of a page that count
_MINUTES_MAX = (1 << 15) - 1
_SAMPLED = np.dtype([("page", "<u4"), ("odds", "u1", len(_RATES))])
_SAMPLED_MAX = 64  # pages of a folder or host, those with the lowest numbers
_STEPS = 8  # in a factor of e between two odds, as they are stored
_ROUNDS = 8
_HOURS = 8  # age of a page times the likelihood of a change at which it is due, at a freshness of .5
_CHANGED = 0.5  # likelihood of a change at which a page is due in any case
_PAGES = 4  # as many pages of a folder as count as much as what is known of its host

Floats = NDArray[np.float64]


def observed(before: bytes, minutes: float, *, has_changed: bool) -> bytes:
    """Add an observation to those of a page, 2 bytes each.

    An observation has the minutes since the fetch before, and whether the page has changed.
    """
    minutes = min(max(round(minutes), 1), _MINUTES_MAX)
    return (before + (minutes << 1 | has_changed).to_bytes(2, "little"))[-2 * OBSERVATIONS :]


def likelihood(observations: bytes) -> Floats:
    """Return by rate the logarithm of the likelihood, 0 for the most likely."""
    packed = np.frombuffer(observations, "<u2")
    expected = np.outer(np.maximum(packed >> 1, 1) / 60, _RATES)
    found = np.where((packed & 1)[:, None], np.log(-np.expm1(-expected)), -expected).sum(0)
    return np.asarray(found - found.max())


def sampled(sample: bytes, page: int, likely: Floats) -> bytes:
    """Return a sample of pages with the likelihood of one of them."""
    pages = np.frombuffer(sample, _SAMPLED)
    others = pages[pages["page"] != page]
    if len(others) >= _SAMPLED_MAX and page > others["page"][_SAMPLED_MAX - 1]:
        return sample
    whole = np.append(others, np.array([(page, np.frombuffer(_packed(likely), "u1"))], _SAMPLED))
    return np.sort(whole, order="page")[:_SAMPLED_MAX].tobytes()


def in_folder(folder: bytes, page: int, likely: Floats) -> bytes:
    """Return what is known of a folder with the likelihood of one of its pages."""
    return folder[: len(_RATES)] + sampled(folder[len(_RATES) :], page, likely)


def _packed(logarithms: Floats) -> bytes:
    return np.clip(np.rint(-_STEPS * logarithms), 0, 255).astype(np.uint8).tobytes()


def with_common(folder: bytes, host: bytes) -> bytes:
    """Add to the sample of a folder how common each rate is."""
    sample = folder[len(_RATES) :]
    common = _common(sample, _common(host, _FLAT))
    return _packed(np.log(common)) + sample


def _common(sample: bytes, before: Floats) -> Floats:
    """Return how common each rate is, by eight rounds of expectation maximization."""
    odds, common = np.exp(np.frombuffer(sample, _SAMPLED)["odds"] / -_STEPS), before
    for _ in range(_ROUNDS if len(odds) else 0):
        common = _PAGES * before + common * (odds.T @ (1 / (odds @ common)))
        common = common / common.sum()
    return common


def wait_seconds(observations: bytes, folder: bytes, freshness: float) -> int:
    """Return after how many seconds a page is to be fetched, at most a week.

    That is when its age times the likelihood that it has changed is 2 hours at a freshness of .8, or when it has
    probably changed. So a page that seldom changes is not left alone for long, which would cost many stale hours.
    """
    common = np.frombuffer(folder[: len(_RATES)], "u1") if folder else np.zeros(len(_RATES))
    odds = np.exp(likelihood(observations) - common / _STEPS)
    changed = 1 - _FRESH @ (odds / odds.sum())
    hours = _HOURS * (1 / freshness - 1)
    return int(3600 * np.interp(1, np.maximum(changed * _AGES / hours, changed / _CHANGED), _AGES))


def jittered(seconds: int, page: int, at_ms: int) -> int:
    """Return a wait that is .84 to 1.19 times as long, by page and time."""
    return int(seconds * 2 ** (crc32(page.to_bytes(4, "little") + at_ms.to_bytes(8, "little")) / 2**33 - 0.25))
