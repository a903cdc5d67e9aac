"""The library of index functions: its Lua sources, with the constants of Python in them."""

import re
from enum import IntEnum
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from nearstream.schemas.document import ADDRESS_BYTES, CLOCKS_MS
from nearstream.streams.index.candidate import BAND_ANCHORS, RARE_BELOW, RARE_KEYS, RARE_PART, UNIT, WEIGHT_MAX
from nearstream.streams.index.contract import (
    ANCHOR_HEADS,
    BAND_CAP,
    BEST,
    COMMON_READS,
    ENOUGH,
    HEADS,
    KEPT_CAP,
    LINEAGE_CAP,
    MARKS,
    READS,
    REMOVAL_MS,
    WALK,
)
from nearstream.streams.index.details import ADDRESSES_CAP
from nearstream.streams.index.family import (
    FAMILY_CANDIDATES,
    LOG_READS,
    PAIRS_CAP,
    PRESUMED_PERCENT,
    SENT_CAP,
    SLOTS_MS,
    WINDOWS_MS,
    Sending,
)
from nearstream.streams.index.labels import LABELS_CAP
from nearstream.streams.records.record import SHARED, SUPERSEDED
from nearstream.workers.redis_index.layout import (
    ADMISSION,
    ADMISSION_FORMAT,
    ANSWER,
    ANSWER_FORMAT,
    ANSWER_OFFSETS,
    CANDIDATE,
    CANDIDATE_FORMAT,
    CHECKPOINT_FIELD,
    CHUNK_BYTES,
    EPOCH_BYTES,
    FAMILY_FORMAT,
    FAMILY_ID_BYTES,
    FEW,
    FIELD_DIGITS,
    FOLLOWERS_FIELD,
    FORMAT,
    GROUP,
    LABEL_FORMAT,
    LABELLED_FORMAT,
    LARGE_FORMAT,
    LAYOUT_FIELDS,
    LOG_TRIMMED,
    MAX_KEYS,
    MEMBER,
    MEMBER_FIELD,
    MEMBER_FORMAT,
    NO_PARTITION,
    NUMBER_BYTES,
    PAIR_SIZE,
    RECIPIENTS,
    RECORD,
    RECORD_FORMAT,
    REMOVED,
    REMOVED_FORMAT,
    SENDERS,
    SENT,
    SETTLEMENT_FORMAT,
    SLOT_FORMAT,
    SMALL_FORMAT,
    STATUS_LETTERS,
    TEXT_FIELD,
    VIEW_FORMAT,
    AdmissionFlag,
    AnswerFlag,
    CandidateFlag,
    KeyKind,
    LabelCode,
    SettledLetter,
    SettlementFlag,
)

_SOURCES = ("states.lua", "texts.lua", "families.lua", "labels.lua", "addresses.lua", "functions.lua")
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]+\b")

_FLAGS: tuple[type[IntEnum], ...] = (AdmissionFlag, AnswerFlag, CandidateFlag, LabelCode, SettlementFlag, Sending)
LuaValue = int | str | tuple[str, ...] | tuple[int, ...]
LUA_CONSTANTS: dict[str, LuaValue] = {
    # The contract of an index, which `MemoryIndex` keeps with equal numbers.
    "HEADS": HEADS,
    "BAND_CAP": BAND_CAP,
    "ANCHOR_HEADS": ANCHOR_HEADS,
    "LINEAGE_CAP": LINEAGE_CAP,
    "KEPT_CAP": KEPT_CAP,
    "REMOVAL_MS": REMOVAL_MS,
    "WALK": WALK,
    "COMMON_READS": COMMON_READS,
    "READS": READS,
    "MARKS": MARKS,
    "BEST": BEST,
    "UNIT": UNIT,
    "RARE_BELOW": RARE_BELOW,
    "RARE_KEYS": RARE_KEYS,
    "RARE_PART": RARE_PART,
    "BAND_ANCHORS": BAND_ANCHORS,
    "ENOUGH": ENOUGH,
    "WEIGHT_MAX": WEIGHT_MAX,
    "PRESUMED_PERCENT": PRESUMED_PERCENT,
    "FAMILY_CANDIDATES": FAMILY_CANDIDATES,
    "PAIRS_CAP": PAIRS_CAP,
    "SENT_CAP": SENT_CAP,
    "LOG_READS": LOG_READS,
    "SLOTS_MS": SLOTS_MS,
    "WINDOWS_MS": WINDOWS_MS,
    "LABELS_CAP": LABELS_CAP,
    "ADDRESSES_CAP": ADDRESSES_CAP,
    "ADDRESS_BYTES": ADDRESS_BYTES,
    # The layout.
    "FORMAT": FORMAT,
    "EPOCH_BYTES": EPOCH_BYTES,
    "CHECKPOINT_FIELD": CHECKPOINT_FIELD,
    "NUMBER_BYTES": NUMBER_BYTES,
    "CHUNK_BYTES": CHUNK_BYTES,
    "GROUP": GROUP,
    "TEXT_FIELD": TEXT_FIELD,
    "MEMBER_FIELD": MEMBER_FIELD,
    "FOLLOWERS_FIELD": FOLLOWERS_FIELD,
    "SENT": SENT,
    "SENDERS": SENDERS,
    "RECIPIENTS": RECIPIENTS,
    "FAMILY_ID_BYTES": FAMILY_ID_BYTES,
    "FEW": FEW,
    "LOG_TRIMMED": LOG_TRIMMED,
    "ANSWER_OFFSETS": ANSWER_OFFSETS,
    "NO_PARTITION": NO_PARTITION,
    "SUPERSEDED": SUPERSEDED,
    "SHARED": SHARED,
    "MAX_KEYS": MAX_KEYS,
    "LAYOUT_FIELDS": LAYOUT_FIELDS,
    "RECORD_FORMAT": RECORD_FORMAT,
    "RECORD_SIZE": RECORD.size,
    "ADMISSION_FORMAT": ADMISSION_FORMAT,
    "ADMISSION_SIZE": ADMISSION.size,
    "KEY_FORMAT": f"c{CHUNK_BYTES}c{FIELD_DIGITS}",
    "KEY_SIZE": CHUNK_BYTES + FIELD_DIGITS,
    "ANSWER_FORMAT": ANSWER_FORMAT,
    "ANSWER_SIZE": ANSWER.size,
    "CANDIDATE_FORMAT": CANDIDATE_FORMAT,
    "CANDIDATE_SIZE": CANDIDATE.size,
    "LABEL_FORMAT": LABEL_FORMAT,
    "LABELLED_FORMAT": LABELLED_FORMAT,
    "REMOVED_FORMAT": REMOVED_FORMAT,
    "REMOVED_SIZE": REMOVED.size,
    "CLOCKS_MS": CLOCKS_MS,
    "MEMBER_FORMAT": MEMBER_FORMAT,
    "MEMBER_SIZE": MEMBER.size,
    "FAMILY_FORMAT": FAMILY_FORMAT,
    "LARGE_FORMAT": LARGE_FORMAT,
    "SMALL_FORMAT": SMALL_FORMAT,
    "SLOT_FORMAT": SLOT_FORMAT,
    "VIEW_FORMAT": VIEW_FORMAT,
    "SETTLEMENT_FORMAT": SETTLEMENT_FORMAT,
    "PAIR_SIZE": PAIR_SIZE,
    **{f"{kind.name}_KEY": kind.decode() for kind in KeyKind},
    **{status.name: letter.decode() for status, letter in STATUS_LETTERS.items()},
    **{flag.name: flag.value for flags in _FLAGS for flag in flags},
    **{letter.name: letter.decode() for letter in SettledLetter},
}


@cache
def function_library() -> tuple[str, str]:
    """Return the suffix of the function names, and the source that defines them.

    The suffix is derived from the source, constants included, so that two releases can run side by side.
    """
    source = "".join((files("nearstream.workers.redis_index") / "lua" / name).read_text("utf-8") for name in _SOURCES)
    tables = {name: value for name, value in LUA_CONSTANTS.items() if isinstance(value, tuple)}
    source = source.replace("-- @TABLES@", "\n".join(f"local {name} = {_literal(tables[name])}" for name in tables))
    # Other values take the place of their names, because Lua allows only 200 local variables.
    values = {name: _literal(value) for name, value in LUA_CONSTANTS.items() if name not in tables}
    source = _NAME.sub(lambda name: values.get(name[0], name[0]), source)
    suffix = blake2b(source.encode(), digest_size=4).hexdigest()
    return suffix, source.replace("@@", suffix)


def _literal(value: LuaValue) -> str:
    if isinstance(value, tuple):
        return f"{{{', '.join(map(_literal, value))}}}"
    return str(value) if isinstance(value, int) else f"'{value}'"
