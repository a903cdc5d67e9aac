"""Which records of an index in Redis have their text, and which share that of another one."""

from collections import Counter
from dataclasses import dataclass, field

from redis.asyncio import Redis

from nearstream.streams.records.record import owner_of
from nearstream.workers.redis_index.layout import FOLLOWERS_FIELD, GROUP, MEMBER_FIELD, RECORD, TEXT_FIELD, KeyKind
from nearstream.workers.redis_index.values import integer_of


@dataclass
class StoredTexts:
    """The texts that are stored, by number.

    Attributes:
        own: Numbers whose record has its text.
        shared: The owner of the text of each other number.
        bare: Numbers whose text is stored without a record.
        followers: The counts that are stored.
    """

    own: set[int] = field(default_factory=set)
    shared: dict[int, int] = field(default_factory=dict)
    bare: set[int] = field(default_factory=set)
    followers: dict[int, int] = field(default_factory=dict)

    def check(self, *, counts_are_exact: bool = True) -> None:
        """Require a text for each record, and as many followers as there are records that share a text."""
        assert set(self.shared.values()) <= self.own | self.bare
        counted = Counter(self.shared.values())
        if counts_are_exact:
            assert self.followers == counted
            assert self.bare <= set(counted)
        else:
            assert all(self.followers[owner] >= count for owner, count in counted.items())

    def _add(self, number: int, kind: int, value: bytes) -> None:
        if kind == TEXT_FIELD:
            self.bare.add(number)
        elif kind == FOLLOWERS_FIELD:
            self.followers[number] = int(value)
        elif kind != MEMBER_FIELD and (owner := owner_of(value[RECORD.size :])):
            self.shared[number] = owner
        elif kind != MEMBER_FIELD:
            self.own.add(number)

    @classmethod
    async def of(cls, client: Redis, tag: bytes) -> "StoredTexts":
        """Read the groups of a shard."""
        found = cls()
        async for key in client.scan_iter(match=tag.replace(b"{", b"\\{") + KeyKind.RECORDS + b"*"):
            group = integer_of(key[len(tag) + 1 :])
            for name, value in (await client.hgetall(key)).items():
                found._add(group * GROUP + name[0] % GROUP, name[0] // GROUP * GROUP, value)
        return found
