"""Write the lists of docs/reliability.md: faults and attacks, each with a file of its tests.

`python -m tests.support.reliability` writes the page. With build/faults.json as argument it also replaces the results
of the fault runs in that file.
"""

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "reliability.md"
ALWAYS = "each run"
RESULTS = "## Results of the last runs\n"
NO_FIGURES = "|  |  |  |"  # of a test that passed and compares no events

FAULTS = {
    "F01": "a worker is killed at random, again and again",
    "F02": "a worker is frozen, loses its partitions, then wakes",
    "F03": "all workers are stopped and started, one after the other",
    "F04": "the broker is killed, frozen for 20 s, away for 60 s",
    "F05": "Redis is killed and comes back empty",
    "F06": "Redis is frozen for 6 s",
    "F07": "every answer of Redis is 50 ms late, one of 100 by 2 s",
    "F08": "Redis reaches its memory limit",
    "F09": "Redis is set to evict",
    "F10": "the disk of Redis is full",
    "F11": "the disk of the broker is full",
    "F12": "a worker has no network to Kafka and Redis for 30 s, in one direction or both",
    "F13": "a replica that missed the newest writes is promoted",
    "F14": "a worker joins or leaves every 2 s for a minute",
    "F15": "one record of twenty is bad",
    "F16": "documents of 1, 4, 16 MiB",
    "F17": "HTML, MIME and encoded words built to be slow",
    "F18": "2,000 documents that are equal, or share one band (100,000 in the long set)",
    "F19": "texts built to collide",
    "F20": "a worker's clock is two hours ahead (long: two days ahead or behind)",
    "F21": "the whole input again, in order, then shuffled",
    "F22": "a client of the live page never reads, a webhook is dead",
    "F23": "another scheme, key or group at a start, and what such a worker has signed",
    "F24": "dead letters may not be written",
    "F25": "an hour of random faults",
    "F26": "a worker is stopped while the group rebalances",
    "F27": "Redis is away for 120 s",
    "F28": "a worker joins while the others wait for Redis",
    "F29": "the broker answers produce requests with errors",
    "F30": "the broker refuses commits",
    "F31": "nearly all input is bad",
    "F32": "the event loop is blocked",
    "F33": "a batch never ends",
    "F34": "the index lost its newest writes",
    "F35": "a topic is missing at the start",
    "F36": "partitions are added while workers run",
    "F37": "two schemes on one Redis and one set of topics",
    "F39": "the index function fails in the middle of a call",
    "F40": "a frozen signer wakes after the removal of its document",
    "F41": "batches of some kilobytes that decompress to gigabytes",
    "F42": "a worker is killed in the middle of a storm of copies",
    "F43": "a primary of a Redis Cluster is killed in a storm of copies, and its replica is promoted",
    "F44": "slots of a Redis Cluster move to other servers while batches run",
}
BAD_INPUT = {
    "B01": "random bytes: `not_json`",
    "B02": "truncated JSON: `not_json`",
    "B03": "text after the object: `not_json`",
    "B04": "null value with a key or `nearstream-id`: a removal",
    "B05": "null value that names no document: `invalid_id`",
    "B06": "empty value: `empty_value`",
    "B07": "only white space: `not_json`",
    "B08": "JSON, but no object: `invalid_message`",
    "B09": "no id: one is derived",
    "B10": "no content: `no_content`",
    "B11": "`text` is null: `no_content`",
    "B12": "`text` of another type: `invalid_message`",
    "B13": "two contents: `several_contents`",
    "B14": "100,000 levels deep: `not_json`",
    "B15": "a JSON key twice: the last one wins",
    "B16": "NaN, Infinity: `not_json`",
    "B17": "a lone surrogate: `not_json`",
    "B18": "control characters in the text: accepted",
    "B19": "invalid UTF-8: `not_json`",
    "B20": "a byte order mark: ignored",
    "B21": "UTF-16: `not_json`",
    "B22": "unknown fields: ignored",
    "B23": "a document for a later major: `no_content` or `invalid_message`",
    "B24": "an id that is empty or too long: `invalid_id`",
    "B25": "an id with control characters: `invalid_id`",
    "B26": "an id of any other characters: accepted",
    "B27": "a collection outside its pattern: `invalid_message`",
    "B28": "a lineage over 512 characters: hashed",
    "B29": "a time without zone: `invalid_time`",
    "B30": "a time before 1970 or over a day ahead: `invalid_time`",
    "B31": "a time a few minutes ahead: accepted",
    "B32": "too many or bad labels: `invalid_message`",
    "B33": "a URL over 4,096 characters: `invalid_message`",
    "B34": "white space, punctuation, one emoji: nothing, or signed as short",
    "B35": "1 MiB of one character or word: signed within bounds",
    "B36": "no spaces between words: signed",
    "B37": "zero-width or direction marks: the copy is still found",
    "B38": "one text composed and decomposed: equal",
    "B39": "a text over 1 MiB: `too_large`",
    "B40": "a record over 4 MiB: refused before it is sent",
    "B41": "gzip beyond ratio 100 or 16 MiB: `decompression_limit`",
    "B42": "damaged gzip: `invalid_message`",
    "B43": "an unknown content type: `unsupported_content_type`",
    "B44": "a wrong charset: `charset_replaced`",
    "B45": "`raw` without `content_type`: `unsupported_content_type`",
    "B46": "invalid base64: `invalid_message`",
    "B47": "an HTML bomb: killed, its tags stripped",
    "B48": "a mail bomb: read within bounds",
    "B49": "a document that ends the process of its extractor: its tags stripped",
    "B50": "a null record key: never used as an id",
    "B51": "a key that is not UTF-8: never used as an id",
    "B52": "a key over 512 characters: never used as an id",
    "B53": "a header value that is null or not UTF-8: the reason of its field, foreign headers are kept",
    "B54": "a header name that is not UTF-8: the record is read",
    "B55": "repeated headers: the last one of ours wins, all foreign ones are kept",
    "B56": "batches compressed by each codec: read",
    "B57": "a record that unpacks beyond the limit: `too_large`, beyond 64 MiB: `empty_value`",
    "B58": "a record without time: `invalid_time`",
    "B59": "gaps between offsets: crossed",
    "B60": "markers of transactions: crossed, and aborted records are processed",
    "B61": "a signature that cannot be read: `invalid_signature`",
    "B62": "a signature over 128 KiB: `invalid_signature`",
    "B63": "a signature of another scheme or key: `other_scheme`",
    "B64": "a signature under another document's key: `invalid_signature`",
    "B65": "a signature with a time out of bounds: `invalid_signature`",
}
SECURITY = {
    "S01": "without a token only loopback is served",
    "S02": "a wrong token is refused",
    "S03": "slow or huge requests to the status port are cut",
    "S04": "ids stay text in a browser",
    "S05": "the status port shows no ids",
    "S06": "webhooks reach no private address",
    "S07": "connections go to Kafka and Redis only, of the mail filter to the HTTP API only",
    "S08": "collisions of features cannot be constructed: F19",
    "S09": "the key has at least 32 bytes, and production refuses the public one",
    "S10": "a dump of the index holds no sketch values",
    "S11": "what a reader of the index can confirm is documented",
    "S12": "a flood is bounded by caps: F18",
    "S13": "collections never meet",
    "S14": "foreign signatures are bounded",
    "S15": "no text in Redis, events, logs",
    "S16": "ids, URLs, headers, files, arguments and errors are escaped in all output and logs",
    "S17": "secrets are never shown",
    "S18": "no pickle, no eval, no built-up Lua",
    "S19": "unpacking is limited, and regular expressions are linear",
    "S20": "TLS, SASL, least privilege",
    "S21": "what writers to `documents` can do is documented",
    "S22": "dependencies of the image are locked by hash",
    "S23": "the image runs without root",
}


class Held(NamedTuple):
    """A test of one id. A parameter may put part of it into another set."""

    path: str
    name: str
    sets: frozenset[str]


@cache
def holding_tests() -> Mapping[str, list[Held]]:
    """Return the tests of each id, which they carry in their names."""
    found: dict[str, list[Held]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        code = path.read_text()
        for test in ast.walk(ast.parse(code)) if re.search(r"def test_[fbs]\d\d_", code) else ():
            if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
                ids = re.match(r"test_((?:[fbs]\d\d_)*)", test.name)
                for one in (ids[1] if ids else "").upper().split("_")[:-1]:
                    sets = frozenset(_sets([ast.unparse(mark) for mark in test.decorator_list]))
                    found[one].append(Held(path.relative_to(ROOT).as_posix(), test.name, sets))
    return found


def _sets(marks: Sequence[str]) -> Iterator[str]:
    whole = [name for name in ("soak", "long") if f"pytest.mark.{name}" in marks]
    yield from whole or [ALWAYS]
    if any("marks=pytest.mark.long" in mark for mark in marks):
        yield "long"


def page(results: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the whole page, with these results of fault runs added to those on the page."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    head, title, rest = PAGE.read_text().partition(RESULTS)
    held = holding_tests()
    known = [row for row in rest.partition("\n## ")[0].splitlines() if row.startswith("| F")]
    rows = {row.split(" | ")[0].partition(" (")[0]: row for row in [*known, *(_row(each, held) for each in results)]}
    yield head + title.rstrip("\n")
    yield from ("", "| id | documents | restated | recovery s |", "|---|---|---|---|")
    yield from sorted(row for row in rows.values() if "(" in row or not row.endswith(NO_FIGURES))
    yield from ("", "## Faults", "", *_tests_of(FAULTS, held))
    yield from ("", "## Security", "", *_tests_of(SECURITY, held))


def _tests_of(known: Mapping[str, str], held: Mapping[str, Sequence[Held]]) -> Iterator[str]:
    """Yield what each id means, with the sets that its tests are in."""
    for one, what in known.items():
        tests = held.get(one, [])
        sets = ", ".join(sorted(frozenset[str]().union(*(test.sets for test in tests))))
        where = f" ({sets})" if sets not in ("", ALWAYS) else ""
        yield f"- {_link(one, tests)} {what}{where}"


def _row(result: Mapping[str, Any], held: Mapping[str, Sequence[Held]]) -> str:
    """Return the row of one fault run.

    The outcome says what was lost or extra. A test that compares no events has only an outcome. The case of a fault is
    the parameter of its test, and the name of the test where several make this fault.
    """
    one, _, name = result["test"].removeprefix("test_").partition("_")
    is_alone = sum(test.path.startswith("tests/fault/") for test in held.get(one.upper(), ())) <= 1
    parameter = name.rstrip("]").partition("[")[2]
    case = parameter if is_alone or parameter else name.replace("_", " ")
    run = result["report"]
    outcome = "" if result["outcome"] == "passed" else result["outcome"]
    if run is None:
        figures = [""] * 3
    else:
        recovery = run["recovery_seconds"]
        seconds = "" if recovery is None else f"{recovery:.1f}"
        figures = [f"{run['documents']:,}", f"{run['restated_share']:.1%}", seconds]
        found = [outcome, "" if run["verdict"] == "ok" else run["verdict"]]
        for measured, unit in (("throughput_share", "of the throughput"), ("memory_mb_per_minute", "MB a minute")):
            found.append("" if run[measured] is None else f"{run[measured]:.2f} {unit}")
        outcome = ", ".join(filter(None, found))
    name = f"{one.upper()} {case}".rstrip()
    return f"| {name}{outcome and f' ({outcome})'} | {' | '.join(figures)} |"


def _link(one: str, tests: Sequence[Held]) -> str:
    return f"[{one}](../{tests[0].path})" if tests else one


if __name__ == "__main__":
    PAGE.write_text(page([each for path in sys.argv[1:] for each in json.loads(Path(path).read_text())]))
