"""Read the text of a record that another record has."""

from nearstream.streams.records.record import owner_of, text_of, with_text
from nearstream.workers.redis_index.client import ask
from nearstream.workers.redis_index.layout import GROUP, RECORD, TEXT_FIELD, KeyKind
from nearstream.workers.redis_index.shard import Shard
from nearstream.workers.redis_index.values import number_bytes


async def whole_record(shard: Shard, packed: bytes) -> bytes | None:
    """Return a record without its head, but with its text.

    None if its text has expired.
    """
    owner = owner_of(packed)
    if not owner:
        return packed
    key, slot = shard.tag + KeyKind.RECORDS + number_bytes(owner // GROUP), owner % GROUP
    record, text = await ask(shard.client, "HMGET", key, bytes((slot,)), bytes((TEXT_FIELD + slot,)))
    if record:
        text = text_of(record[RECORD.size :])
    return with_text(packed, text) if text else None
