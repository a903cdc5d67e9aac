"""A server that is too old, or that evicts keys, is refused in one line."""

import pytest

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.index.index import _check_server


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"redis_version": "6.2.14"}, "NEARSTREAM_REDIS: expected Redis 7.0 or newer, got 6.2.14"),
        ({"redis_version": "7.2.4", "valkey_version": "7.2.6"}, "expected Valkey 8 or newer, got 7.2.6"),
        ({"redis_version": "7.0.1", "maxmemory_policy": "allkeys-lru"}, "expected maxmemory-policy noeviction"),
    ],
)
def test_a_server_that_does_not_fit_is_refused(facts: dict[str, object], expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        _check_server(facts)
