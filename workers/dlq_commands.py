"""What the commands about dead letters do: data on stdout, talk on stderr, an exit code back."""

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from schemas.dead_letter import dead_id
from schemas.kept_letter import KeptLetter
from workers import kafka_letters, kafka_replay, kafka_skip
from workers.exits import Exit
from workers.kafka_letters import Count
from workers.kafka_replay import Outcome, Selection
from workers.replayed import TooManySpansError
from workers.settings import Settings
from workers.show import Progress, escaped

HEAD_CHARACTERS = 2000
_AGE = re.compile(r"(\d{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DEAD_ID = re.compile(r"[0-9a-f]{32}")
_HEX_COLUMNS = 16


def since(text: str) -> int:
    """Milliseconds since 1970 of a time with zone in ISO 8601, or of an age before now: 90s, 15m, 24h, 7d.

    Raises:
        argparse.ArgumentTypeError: It is neither.
    """
    if age := _AGE.fullmatch(text):
        return max(round(1000 * (time.time() - int(age[1]) * _SECONDS[age[2]])), 1)
    try:
        told = datetime.fromisoformat(text)
        if told.tzinfo is not None:
            return max(round(1000 * told.timestamp()), 1)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"a time with zone (2026-03-02T08:15Z) or an age (15m, 24h, 7d) expected: {text}")


def count(settings: Settings, options: argparse.Namespace) -> Exit:
    """Letters by reason, with the newest places."""
    progress = Progress("letters", 0, options.quiet)
    counts = asyncio.run(kafka_letters.count(settings, options.reason, options.since, options.timeout, progress))
    if counts and not options.json:
        print(f"{'reason':<26} {'letters':>9} {'replayed':>9}  {'written (UTC)':<41}  newest")
    for reason, found in counts.items():
        print(json.dumps(_as_json(reason, found)) if options.json else _as_line(reason, found))
    return Exit.OK


def show(settings: Settings, options: argparse.Namespace) -> Exit:
    """One letter: what it says, the headers and bytes of the original."""
    asked = _asked(options.letter)
    if not asked:
        sys.stderr.write("nearstream dlq show: a dead id (32 hex), or TOPIC PARTITION OFFSET, expected\n")
        return Exit.USAGE
    letter = asyncio.run(kafka_letters.find(settings, asked, options.timeout))
    if letter is None:
        sys.stderr.write(f"no letter {asked}\n")
        return Exit.NO
    for line in _told(letter):
        print(line)
    for line in _hex(letter.original.value or b"") if options.hex else _text(letter.original.value or b""):
        print(line)
    return Exit.OK


def replay(settings: Settings, options: argparse.Namespace) -> Exit:
    """Refused records back to their topics."""
    run = kafka_replay.plan if options.dry_run else kafka_replay.replay
    progress = Progress("letters", 0, options.quiet)
    try:
        outcome = asyncio.run(run(settings, Selection(options.reason, options.since), options.timeout, progress))
    except TooManySpansError as error:
        sys.stderr.write(f"nearstream: {error}: replay without --reason and --since\n")
        return Exit.NO
    sys.stderr.write(_summary("would be sent" if options.dry_run else "sent", outcome))
    return Exit.OK


def skip(settings: Settings, options: argparse.Namespace) -> Exit:
    """One record passed over."""
    target = kafka_skip.Target(options.topic, options.partition, options.offset)
    try:
        asyncio.run(kafka_skip.skip(settings, target, options.timeout))
    except kafka_skip.NotSkippedError as error:
        sys.stderr.write(f"nearstream: {error}\n")
        return Exit.NO
    sys.stderr.write(f"skipped {options.offset}\n")
    return Exit.OK


def _summary(verb: str, outcome: Outcome) -> str:
    causes = ", ".join(f"{number} {cause}" for cause, number in outcome.skipped.most_common())
    return f"{verb} {outcome.sent}, skipped {outcome.skipped.total()}{f': {causes}' if causes else ''}\n"


def _asked(words: list[str]) -> str:
    """The dead id that is asked for; empty: none."""
    match words:
        case [one] if _DEAD_ID.fullmatch(one):
            return one
        case [topic, partition, offset] if partition.isdecimal() and offset.isdecimal():
            return dead_id(topic, int(partition), int(offset))
    return ""


def _as_line(reason: str, found: Count) -> str:
    places = ", ".join(f"{escaped(about.topic)} {about.partition} {about.offset}" for _, about in found.newest)
    span = f"{_second(found.oldest_ms)} to {_second(found.newest_ms)}"
    replayed = "-" if found.replayed is None else found.replayed
    return f"{escaped(reason):<26} {found.letters:>9} {replayed:>9}  {span:<41}  {places}"


def _as_json(reason: str, found: Count) -> dict[str, object]:
    newest = [
        {"topic": about.topic, "partition": about.partition, "offset": about.offset, "written": _time(written_ms)}
        for written_ms, about in found.newest
    ]
    oldest_newest = {"oldest": _time(found.oldest_ms), "newest": _time(found.newest_ms)}
    counted = {"letters": found.letters, "replayed": found.replayed}
    return {"reason": reason, **counted, **oldest_newest, "places": newest}


def _told(letter: KeptLetter) -> Iterator[str]:
    origin, at = letter.original, letter.letter
    yield f"dead id    {letter.dead_id}"
    yield f"reason     {_printable(letter.reason)}, stage {_printable(letter.stage)}: {_printable(letter.detail)}"
    yield f"origin     {_printable(origin.topic)} {origin.partition} {origin.offset}, {_time(origin.timestamp_ms)}"
    yield f"letter     {at.topic} {at.partition} {at.offset}, {_time(at.timestamp_ms)}, by {_printable(letter.worker)}"
    yield f"value      {letter.size} bytes, sha256 {_printable(letter.sha256)}, kept {_printable(letter.payload)}"
    yield f"replays    {letter.replays}"
    yield f"key        {_bytes(origin.key)}"
    for name, value in origin.headers:
        yield f"header     {_printable(name)}: {_bytes(value)}"


def _bytes(value: bytes | None) -> str:
    return "null" if value is None else _printable(value.decode("utf-8", "backslashreplace"))


def _text(value: bytes) -> Iterator[str]:
    """The first characters, line by line."""
    head = value[: 4 * HEAD_CHARACTERS].decode("utf-8", "backslashreplace")
    shown = head[:HEAD_CHARACTERS]
    yield from map(_printable, shown.splitlines())
    if len(shown) < len(head) or len(value) > 4 * HEAD_CHARACTERS:
        yield "… (--hex shows all)"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:HEAD_CHARACTERS])


def _hex(value: bytes) -> Iterator[str]:
    for start in range(0, len(value), _HEX_COLUMNS):
        row = value[start : start + _HEX_COLUMNS]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{start:08x}  {row.hex(' '):<{3 * _HEX_COLUMNS - 1}}  {text}"


def _second(milliseconds: int) -> str:
    return _time(milliseconds)[:19]


def _time(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
