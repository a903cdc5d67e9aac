"""The private names of Faust, mode and aiokafka that we use exist in the installed releases.

The table in `faust_consumer.py` lists the purpose of each. The fault suite checks that they do
what we need.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import faust
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer import fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from faust.transport.drivers import aiokafka as driver
from mode.threads import ServiceThread

from nearstream.workers.pipeline import faust_consumer, faust_runtime

WORKERS = Path(faust_consumer.__file__).parents[1]


OWNERS: dict[str, type] = {
    "AIOKafkaConsumerThread": driver.AIOKafkaConsumerThread,
    "AIOKafkaConsumer": AIOKafkaConsumer,
    "Fetcher": fetcher.Fetcher,
    "GroupCoordinator": GroupCoordinator,
    "Consumer": driver.Consumer,
    "ServiceThread": ServiceThread,
    "App": faust.App,
    "Producer": driver.Producer,
    "Transport": driver.Transport,
}
USED_ELSEWHERE: dict[type | ModuleType, str] = {
    faust.App: "_create_directories",
    faust.Worker: "_crash _gather_all _sentinel_task crash_reason _signal_stop_time _starting_fut spinner",
    AIOKafkaConsumer: "_client",
    AIOKafkaClient: "close",
    AIOKafkaAdminClient: "_send_request",
    AIOKafkaConnection: "authenticator_oauth _sasl_oauth_token_provider",
    fetcher: "MemoryRecords",
}


def _used() -> Iterator[tuple[type | ModuleType, str]]:
    """Yield the names in the table of `faust_consumer.py`, where `.name` is one of the class before, and the others."""
    for line in str(faust_consumer.__doc__).splitlines():
        owner = ""
        for class_name, name in re.findall(r"`(\w*)\.(\w+)`", line.split("|")[1] if line.startswith("| `") else ""):
            owner = class_name or owner
            yield OWNERS[owner], name
    for other, names in USED_ELSEWHERE.items():
        yield from ((other, name) for name in names.split())


USED = list(_used())


def test_the_private_names_that_we_use_exist() -> None:
    assert len(USED) > 40
    assert [(owner, name) for owner, name in USED if not hasattr(owner, name) and not _is_set(owner, name)] == []


def _is_set(owner: type | ModuleType, name: str) -> bool:
    """Return whether the class or a base declares the attribute or sets it in a method."""
    bases = [base for base in inspect.getmro(owner) if base is not object] if isinstance(owner, type) else []
    return any(name in inspect.get_annotations(base) or f"self.{name} = " in inspect.getsource(base) for base in bases)


OVERRIDING = [
    (ours, base, name)
    for ours, base in (
        (faust_consumer.ConsumerThread, driver.AIOKafkaConsumerThread),
        (faust_consumer.BatchConsumer, driver.Consumer),
        (faust_consumer.IdempotentProducer, driver.Producer),
        (faust_runtime.FirstCrashWorker, faust.Worker),
    )
    for name, method in vars(ours).items()
    if inspect.isfunction(method) and hasattr(base, name) and not name.startswith("__")
]


def test_overrides_take_the_parameters_of_what_they_override() -> None:
    assert OVERRIDING
    for ours, base, name in OVERRIDING:
        mine, theirs = (inspect.signature(getattr(owner, name)).parameters for owner in (ours, base))
        assert list(mine) == list(theirs), name
        assert name in {used for owner, used in USED if issubclass(base, owner if isinstance(owner, type) else ())}


def test_no_other_private_name_is_used() -> None:
    paths = [*WORKERS.glob("pipeline/*.py"), *WORKERS.glob("kafka/*.py")]
    assert paths
    assert {path.name: unlisted for path in paths if (unlisted := _unlisted(path))} == {}


def _unlisted(path: Path) -> set[str]:
    """Return the private names of others that a module uses and `USED` lacks."""
    tree = ast.parse(path.read_text())
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    own = {
        getattr(node, "name", None) or getattr(node, "attr", None) or getattr(node, "id", None)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store))
    }
    private = {name for name in attributes - own if name.startswith("_") and not name.startswith("__")}
    return private - {"_replace"} - {name for _, name in USED}  # _replace belongs to every NamedTuple
