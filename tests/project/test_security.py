"""The rules of the security checklist that need no service.

The name of each test contains the id of its rule.
"""

import ast
import importlib
import json
import logging
import pkgutil
import re
import time
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, permutations
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import nearstream
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord, header
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.workers.config.bounds import PATTERNS
from nearstream.workers.config.settings import Settings, SettingsError, load
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.server.functions import function_library
from nearstream.workers.worker.topology import create_app
from tests.support.forged import FORGED, dangerous
from tests.support.matching import TIME, matching, prose, record, signed
from tests.support.signing import signer

ROOT = Path(__file__).parent.parent.parent
PASSWORD = "correct-horse"  # noqa: S105 - a made-up one
SLOWER = 24  # limit of the slowdown for 8 times the input: linear is 8, quadratic 64
SHORT_SECONDS = 20e-6  # too short to be measured
UNBOUNDED = re.compile(r"[*+]|\{\d*,\}")  # what an expression needs to be more than linear
MATCHED = ("_BASE64_LINES",)  # expressions of which only `match` is used, which begins at one place
HOSTILE_FIELDS = (
    *("id", "text", "html", "raw", "content_type", "url", "lineage", "collection"),
    *("observed_at", "source", "labels", "unknown"),
)


def modules() -> Iterator[ModuleType]:
    """Yield every module of the package."""
    for found in pkgutil.walk_packages(nearstream.__path__, "nearstream."):
        if not found.name.endswith(("_native", "__main__")):
            yield importlib.import_module(found.name)


@cache
def trees() -> tuple[tuple[str, ast.Module], ...]:
    """Return every source file of the package, parsed."""
    paths = [path for floor in ("schemas", "streams", "workers") for path in (ROOT / floor).rglob("*.py")]
    return tuple((path.name, ast.parse(path.read_text())) for path in paths)


def imported(tree: ast.Module) -> set[str]:
    """Return the full names of the modules that a source file imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("status", ["0.0.0.0:9464", "10.0.0.1:9464", "monitor.example:9464"])
def test_s01_only_loopback_without_a_token(status: str) -> None:
    with pytest.raises(SettingsError, match="NEARSTREAM_STATUS_TOKEN: expected a token"):
        load({"NEARSTREAM_STATUS": status})
    assert load({"NEARSTREAM_STATUS": status, "NEARSTREAM_STATUS_TOKEN": PASSWORD * 2}).status == status
    assert load({"NEARSTREAM_STATUS": "127.0.0.1:0"}).status_token == ""
    assert not create_app(Settings(), Health(), None, None, None).conf.web_enabled


FETCHING = ("http.client", "urllib.request", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "websockets")
SERVING = ("aiohttp.web", "aiohttp.http_exceptions", "aiohttp.typedefs")
# The HTTP API at NEARSTREAM_API, webhooks that NEARSTREAM_ALERTS names, and NEARSTREAM_KAFKA_TOKEN_URL.
CLIENTS = dict.fromkeys(("client.py", "webhooks.py", "tokens.py"), "aiohttp")
RUNNING = ("pickle", "marshal", "shelve", "yaml", "dill", "cloudpickle", "jsonpickle")
# The others escape what they write.
WRITERS = {f"{name}.{way}" for name in ("sys.stdout", "sys.stderr") for way in ("write", "writelines")} | {"print"}
WRITING = ("terminal.py",)


def test_s07_s16_s18_s20_no_module_fetches_writes_or_runs_what_it_is_sent_by_itself() -> None:
    """Few connect to a server or write to the terminal, and every client of Kafka has the settings of all."""
    for name, tree in trees():
        imports = {each for each in imported(tree) if not each.startswith(SERVING) and each != CLIENTS.get(name)}
        assert not [each for each in imports if each.startswith(FETCHING) or each.split(".")[0] in RUNNING], name
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        called = {ast.unparse(call.func) for call in calls}
        assert name in WRITING or not called & WRITERS, name
        assert not [each for each in called if each.startswith("AIOKafka")], name
        assert not called & {"eval", "exec", "compile", "__import__"}, name
        assert "shell" not in {word.arg for call in calls for word in call.keywords}, name
        constants = {str(arg.value) for call in calls for arg in call.args if isinstance(arg, ast.Constant)}
        assert not constants & {"EVAL", "EVALSHA", "SCRIPT"}, name


def test_s11_s21_the_operations_page_says_what_readers_and_writers_can_do() -> None:
    told = " ".join((ROOT / "docs/operations.md").read_text().split())
    assert "A producer that may write to `documents` can hurt availability" in told
    assert "restrict writers by ACL" in told
    assert "with the key a reader can confirm a guessed short text" in told


def test_s13_equal_documents_in_two_collections_have_no_key_in_common() -> None:
    key = HashKey.public()
    scheme = preset("fine", key)
    one, two = (
        scheme.keys(Signer(scheme, key).sign(Document(id="a", text=prose(1), collection=name, observed_at=TIME)), key)
        for name in ("one", "two")
    )
    flat = [{keys.digest, keys.lineage, *keys.bands, *keys.anchors} for keys in (one, two)]
    assert len(flat[0]) > 20
    assert flat[0] & flat[1] <= {None}


async def test_s14_a_signature_under_another_key_is_refused_and_under_a_false_scheme_name_matches_nothing() -> None:
    text, key = prose(1), HashKey.from_secret(b"another")
    document = Document(id="foreign", text=text, collection="news", observed_at=TIME)
    foreign, mine = Signer(preset("fine", key), key).sign(document), signed("mine", text)
    lying = msgspec.structs.replace(foreign, scheme=mine.scheme)
    decided = await matching().decide([record(mine), record(foreign, 1), record(lying, 2)])
    assert [header(each.headers, "nearstream-dead-reason") for each in decided] == [b"other_scheme"]


async def test_s16_no_dead_letter_writes_what_it_was_sent_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for forged in FORGED:
        mark = f"MARK{forged}MARK"
        values = [json.dumps({"id": "a", "text": "b", **{name: mark}}).encode() for name in HOSTILE_FIELDS]
        values += [json.dumps(mark).encode(), json.dumps({mark: mark}).encode(), b"{" + mark.encode(errors="replace")]
        raw = mark.encode("utf-8", "surrogatepass")
        pairs = [("content-type", raw), ("content-encoding", raw), (mark, raw), ("nearstream-id", raw)]
        records = [ConsumerRecord("documents", 0, at, 0, raw, value, []) for at, value in enumerate(values)]
        records += [ConsumerRecord("documents", 0, 99, 0, raw, raw, [pair]) for pair in pairs]
        records += [ConsumerRecord("documents", 0, 100, 0, raw, None, [pair]) for pair in pairs]
        await signer().decide(records)
        await matching().decide([each._replace(topic="signatures") for each in records])
    told = [line.getMessage() for line in caplog.records]
    assert len(told) > 100
    for line in told:
        assert "MARK" not in line
        assert not dangerous(line)


def test_s17_secrets_never_appear_in_a_traceback_that_shows_values() -> None:
    secrets = {
        "NEARSTREAM_HASH_KEY": PASSWORD * 3,
        "NEARSTREAM_KAFKA_SECURITY": "SASL_PLAINTEXT",
        "NEARSTREAM_KAFKA_USERNAME": "us",
        "NEARSTREAM_KAFKA_PASSWORD": PASSWORD,
        "NEARSTREAM_REDIS": f"redis://:{PASSWORD}@h:6379/0",
        "NEARSTREAM_STATUS_TOKEN": PASSWORD * 3,
    }
    settings = load(secrets)
    try:
        _fail(settings)
    except ZeroDivisionError as error:
        told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "kafka_username='us'" in told
    assert "namespace='nearstream'" in told
    assert "cluster=False" in told
    assert PASSWORD not in told.replace(str(secrets), "")


def _fail(settings: Settings) -> None:
    deployment = Deployment.of(settings)
    address = deployment.index_address()
    assert PASSWORD in address.url
    raise ZeroDivisionError


def test_s18_lua_is_fixed_and_builds_no_code() -> None:
    _, source = function_library()
    assert not re.findall(r"\bload\s*[({'\"\[]|\b(?:loadstring|dofile|loadfile|setfenv|require)\b", source)
    assert not re.findall(r"redis\.p?call\('(?:EVAL|EVALSHA|FUNCTION|SCRIPT|CONFIG|FLUSH\w+|KEYS)'", source)


@cache
def expressions() -> list[tuple[str, str]]:
    """Return the regular expressions of the package with a method that uses them, `search` if another is not known."""
    found = {(pattern, "fullmatch") for pattern, _ in PATTERNS.values()}
    for name, value in [named for module in modules() for named in vars(module).items()]:
        pattern = value.pattern if isinstance(value, re.Pattern) else value if name.endswith("_PATTERN") else None
        if pattern is not None:
            found.add((_as_text(pattern), "match" if name in MATCHED else "search"))
    for call in [node for _, tree in trees() for node in ast.walk(tree)]:
        match call:
            case ast.Call(ast.Attribute(ast.Name("re"), way), [ast.Constant(pattern), *_]) if way != "compile":
                found.add((_as_text(pattern), "search"))
    return sorted(found)


def _as_text(pattern: str | bytes) -> str:
    return pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern


def test_s19_no_regex_is_superlinear() -> None:
    """Nor is a group possessive, which matches what it should not up to Python 3.11.4 (issue 106052 of cpython)."""
    assert len(expressions()) > 100
    for pattern, way in expressions():
        assert not re.search(r"\)(?:[*+?]|\{\d*,?\d*\})\+", pattern), f"write (?>(?:...)*) in {pattern}"
        if UNBOUNDED.search(pattern):
            _is_linear(pattern, way)


def _is_linear(pattern: str, way: str) -> None:
    """Match a pattern with repeated characters, pairs of those that it names, and with prefixes of it."""
    own = sorted({*re.sub(r"\w", "", pattern), *pattern[:6], "a"})
    signs = sorted({*own, *'aA0 @/?:,.-="'})
    # A search also begins behind the first sign of "ababab", so it has read "bababa".
    is_everywhere = way == "search" and not pattern.startswith("^") and r"\A" not in pattern
    pairs = combinations(own, 2) if is_everywhere else permutations(own, 2)
    units = [pattern[:3], *signs, *map("".join, pairs)]
    use = getattr(re.compile(pattern), way)
    for unit in units:
        for prefix in ("", pattern[:3]):
            long = f"{prefix}{unit * 2000}\0"
            if _seconds(use, long) > SLOWER * SHORT_SECONDS:
                _is_linear_in(use, prefix, unit)


def _is_linear_in(use: Callable[[str], object], prefix: str, unit: str) -> None:
    """Compare the time of a text with that of one eight times as long."""
    short, long = f"{prefix}{unit * 250}\0", f"{prefix}{unit * 2000}\0"
    if use(short) and not use(long):  # which is other work than a match
        short, long = long, f"{prefix}{unit * 16_000}\0"
    for repeats in (1, 3, 20):  # another process may have emptied the caches, so measure again
        fast = min(_seconds(use, short) for _ in range(repeats))
        slow = min(_seconds(use, long) for _ in range(repeats))
        if slow <= SLOWER * max(fast, SHORT_SECONDS):
            return
    raise AssertionError((use, unit, fast, slow))


def _seconds(use: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    use(text)
    return time.thread_time() - began
