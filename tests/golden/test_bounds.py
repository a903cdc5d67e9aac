"""Every field that a stranger may fill is bounded: at its bound it is read, and one beyond it is refused."""

import base64
import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from nearstream.schemas.documents import document
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.published.json_schema import MESSAGES
from nearstream.schemas.topics.codec import (
    ORIGIN_HEADER,
    InvalidMessageError,
    decode_label_request,
    decode_signature,
    decode_signature_line,
    encode_signature,
    origin_of,
)
from nearstream.streams.store.record import pack_signature
from tests.golden.test_every_field import EXAMPLES, decode, fields, shown
from tests.support.matching import matching, record

FOREIGN = [name for name in MESSAGES if name not in ("document", "signature")]
# The longest text that a pattern allows, and one beyond.
OF_PATTERN = {
    document.NAME_PATTERN: ("n" * 63, "n" * 64),
    document.LABEL_NAME_PATTERN: ("n" * 31, "n" * 32),
    document.ID_PATTERN: ("\U0001f426" * 512, "i" * 513),
    r"^[0-9a-f]{32}(?!\n)$": ("f" * 32, "f" * 33),
    r"^[0-9a-f]{16}(?!\n)$": ("f" * 16, "f" * 17),
    r"^(?:\*|[a-z0-9][a-z0-9-]{0,62})(?!\n)$": ("n" * 63, "n" * 64),
}
TIMES = ("9999-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00+14:00")
Value = Any  # of a field in JSON, with bytes as they are


def bounds(kind: inspect.Type) -> Iterator[tuple[Value, list[Value]]]:  # noqa: C901 - one case for each type
    """Yield for each type that a field may have its value at the bound, and values beyond.

    A type without a bound fails the test.
    """
    match kind:
        case inspect.Metadata():
            yield from bounds(kind.type)
        case inspect.UnionType():
            for each in kind.types:
                yield from bounds(each)
        case inspect.BoolType() | inspect.NoneType() | inspect.StructType():
            return
        case inspect.LiteralType():
            yield kind.values[-1], [f"{kind.values[-1]}x"]
        case inspect.IntType() | inspect.FloatType():
            assert kind.ge is not None, "no lower bound"
            assert kind.le is not None, "no upper bound"
            yield kind.le, [kind.le + 1, kind.ge - 1]
        case inspect.DateTimeType():
            yield TIMES[0], list(TIMES[1:])
        case inspect.StrType():
            if kind.pattern is not None:
                at, beyond = OF_PATTERN[kind.pattern]
                yield at, [beyond]
            else:
                assert kind.max_length is not None, "no longest length"
                yield "\U0001f426" * kind.max_length, ["x" * (kind.max_length + 1)]
        case inspect.BytesType():
            assert kind.max_length is not None, "no longest length"
            yield b"\xff" * kind.max_length, [b"\xff" * (kind.max_length + 1)]
        case inspect.DictType():
            assert kind.max_length is not None, "no largest size"
            (key, long_keys), (value, long_values) = next(bounds(kind.key_type)), next(bounds(kind.value_type))
            full = {f"{key[:-2]}{number:02}": value for number in range(kind.max_length)}
            beyond: list[Value] = [{**full, "one-more": value}]
            beyond += [{each: value} for each in long_keys] + [{key: each} for each in long_values]
            yield full, beyond
        case inspect.VarTupleType():
            assert kind.max_length is not None, "no largest size"
            item = next(bounds(kind.item_type), (None, []))
            if item[0] is not None:
                yield [item[0]] * kind.max_length, [[item[0]] * (kind.max_length + 1), *([each] for each in item[1])]
        case inspect.TupleType():
            ends = [next(bounds(each)) for each in kind.item_types]
            at = [each for each, _ in ends]
            yield at, [at[:-1], [*at, 0], *([beyond, *at[1:]] for beyond in ends[0][1])]
        case _:
            raise AssertionError(f"no bound is known of {kind}")


def sizes(kind: inspect.Type, parts: list[Value]) -> Iterator[tuple[Value, list[Value]]]:
    """Yield for a type of several structs the longest list of such parts, and a longer one."""
    for each in kind.types if isinstance(kind, inspect.UnionType) else (kind,):
        if isinstance(each, inspect.VarTupleType) and isinstance(each.item_type, inspect.StructType):
            assert each.max_length is not None, "no largest size"
            yield parts[:1] * each.max_length, [parts[:1] * (each.max_length + 1)]


@pytest.mark.parametrize("name", FOREIGN)
def test_every_field_is_read_at_its_bound_and_refused_beyond(name: str) -> None:
    kinds = dict(fields(MESSAGES[name]))
    for path, whole, part in shown(name):
        for at, beyond in (*bounds(kinds[path]), *sizes(kinds[path], part[path[-1]])):
            part[path[-1]] = at
            decode(name, whole)
            for value in beyond:
                part[path[-1]] = value
                with pytest.raises(InvalidMessageError):
                    decode(name, whole)


@pytest.mark.parametrize("name", FOREIGN)
def test_no_error_quotes_the_value_of_a_field(name: str) -> None:
    secret = "very secret, and long" * 1_000
    for path, whole, part in shown(name):
        for value in (secret, [secret], {secret: secret}):
            part[path[-1]] = value
            with pytest.raises(InvalidMessageError) as refused:
                decode(name, whole)
            assert "secret" not in str(refused.value), path


def varied() -> Iterator[tuple[str, list[Value], bool]]:
    """Yield arrays of a signature of which one field is at its bound, or beyond it."""
    whole: list[Value] = msgspec.msgpack.decode((EXAMPLES / "signature.msgpack").read_bytes())
    info = inspect.type_info(Signature)
    assert isinstance(info, inspect.StructType)
    for position, field in enumerate(info.fields):
        for name, at, beyond in _of_field(field, whole[position]):
            for value in (at, *beyond):
                yield f"{field.name}{name}", [*whole[:position], value, *whole[position + 1 :]], value is at


def _of_field(field: inspect.Field, value: Value) -> Iterator[tuple[str, Value, list[Value]]]:
    for at, beyond in bounds(field.type):
        yield "", at, beyond
    for struct in field.type.types if isinstance(field.type, inspect.UnionType) else ():
        if isinstance(struct, inspect.StructType):
            for inner in struct.fields:
                for at, beyond in bounds(inner.type):
                    yield (
                        f".{inner.name}",
                        {**value, inner.name: at},
                        [{**value, inner.name: each} for each in beyond],
                    )


def line_of(values: list[Value]) -> bytes:
    def plain(value: Value) -> Value:
        return base64.b64encode(value).decode() if isinstance(value, bytes) else value

    return json.dumps([plain(value) for value in values]).encode()


VARIED = list(varied())


def test_a_signature_is_bounded_at_every_door() -> None:
    """A record of the topic, a line of a file, and a request of the HTTP API."""
    doors = {
        "topic": lambda values: decode_signature(msgspec.msgpack.encode(values)),
        "file": lambda values: decode_signature_line(line_of(values)),
        "http": lambda values: decode_label_request(b'{"label":"spam","signature":' + line_of(values) + b"}"),
    }
    for name, values, is_bounded in VARIED:
        for door, read in doors.items():
            assert is_read(read, values) is is_bounded, (name, door)


def is_read(read: Callable[[list[Value]], object], values: list[Value]) -> bool:
    try:
        read(values)
    except InvalidMessageError:
        return False
    return True


async def test_no_signature_ends_the_step_that_matches() -> None:
    for offset, (_, values, _) in enumerate(VARIED):
        key = f"{values[1]}/{values[2]}".encode()
        await matching().decide([record(msgspec.msgpack.encode(values), offset, key)])


def test_the_index_stores_a_signature_whose_fields_are_all_at_their_bounds() -> None:
    values: list[Value] = msgspec.msgpack.decode((EXAMPLES / "signature.msgpack").read_bytes())
    names = list(Signature.__struct_fields__)
    packed = ("digest", "raw_digest", "sketch", "rate", "ld", "gaps", "anchors", "n_bytes")
    for name, varied_values, is_bounded in VARIED:
        position = names.index(name.partition(".")[0])
        if is_bounded and names[position] not in packed:
            values[position] = copy.deepcopy(varied_values[position])
    signature = decode_signature(msgspec.msgpack.encode(values))
    assert decode_signature(encode_signature(signature)) == signature
    assert len(pack_signature(signature)) > 512 * 4


def test_the_origin_of_a_removal_is_bounded() -> None:
    partition, offset = document.PARTITION_MAX, document.OFFSET_MAX
    for place, is_read in (
        ((partition, offset), True),
        ((partition, offset + 1), False),
        ((partition + 1, offset), False),
    ):
        named = f"documents/{place[0]}/{place[1]}".encode()
        assert (origin_of([(ORIGIN_HEADER, named)]) is not None) is is_read
