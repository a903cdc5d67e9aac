"""What alert rules have counted, in Redis."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from nearstream.streams.alerting.counting import ENDED_BY_SILENCE, Rule, Subject, Tally
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.redis.server.client import Client, ask, ask_fields, call

KEPT_MS = 7 * 86_400_000  # after the last alert, so that a redelivery sends it again
FIRING_MAX = 4_096  # alerts that are listed as firing. Those that silence does not end are half of them at most.
_TRIES = 50
_FIELD = b"tally"
_EMPTY = msgspec.msgpack.encode(Tally())


@dataclass(frozen=True)
class TallyStore:
    """Reads and changes tallies. Several workers may change one at once."""

    client: Client  # a client of the server of the index
    namespace: str  # first part of every key

    async def change(self, rule: Rule, subject: Subject, action: Callable[[Tally], Tally]) -> Tally:
        """Replace the tally of a subject by what `action` makes of it, and return that.

        `action` is called again if another worker has changed the tally meanwhile.
        """
        key = self._key(rule, subject)
        for _ in range(_TRIES):
            former: bytes = await ask(self.client, "HGET", key, _FIELD) or b""
            tally = action(msgspec.msgpack.decode(former, type=Tally) if former else Tally())
            changed = msgspec.msgpack.encode(tally)
            if changed == (former or _EMPTY):
                return tally
            if tally.is_firing:
                # Before the tally, because an alert that is not listed here would not end in silence.
                most = FIRING_MAX if rule.name in ENDED_BY_SILENCE else FIRING_MAX // 2
                if await ask(self.client, "HLEN", self._firing) < most:
                    await ask(self.client, "HSET", self._firing, key, msgspec.msgpack.encode((rule.name, subject)))
            if await call(self.client, "claim", key, _FIELD, former, changed):
                await ask(self.client, "PEXPIRE", key, _kept_ms(rule, tally))
                return tally
        raise IndexUnavailableError("other workers change what alerts count all the time")

    async def firing(self) -> AsyncIterator[tuple[str, Subject]]:
        """Yield the rule and the subject of each alert that is listed as firing."""
        for value in (await ask_fields(self.client, self._firing)).values():
            name, subject = msgspec.msgpack.decode(value, type=tuple[str, Subject])
            yield name, subject

    async def forget_firing(self, rule: Rule, subject: Subject) -> None:
        """Remove an alert that has ended from the list of those that are firing."""
        await ask(self.client, "HDEL", self._firing, self._key(rule, subject))

    @property
    def _firing(self) -> bytes:
        return f"{{{self.namespace}}}:alerts".encode()

    def _key(self, rule: Rule, subject: Subject) -> bytes:
        about = msgspec.msgpack.encode((rule.name, subject.collection, subject.name))
        name = blake2b(about, digest_size=16).hexdigest()
        # In a cluster each key has a slot of its own. The user of the index may write keys that begin like this.
        return f"{{{self.namespace}:alert:{name}}}".encode()


def _kept_ms(rule: Rule, tally: Tally) -> int:
    return 2 * rule.window_ms + (KEPT_MS if tally.alerts else 0)
