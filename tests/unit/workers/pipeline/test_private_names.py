"""The private names of Faust, mode and aiokafka that we use exist in the installed releases.

The table in `faust_consumer.py` lists the purpose of each. The fault suite checks that they do
what we need.
"""

import ast
import inspect
from pathlib import Path
from types import ModuleType

import faust
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer import fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from faust.transport import consumer as faust_transport
from faust.transport.drivers import aiokafka as driver
from mode.threads import ServiceThread

from nearstream.workers.pipeline import faust_consumer, faust_runtime

WORKERS = Path(faust_consumer.__file__).parents[1]
USED_BY_OUR_CONSUMER = [
    (driver.AIOKafkaConsumerThread, "on_start"),
    (driver.AIOKafkaConsumerThread, "on_thread_stop"),
    (driver.AIOKafkaConsumerThread, "commit"),
    (driver.AIOKafkaConsumerThread, "_commit"),
    (driver.AIOKafkaConsumerThread, "_ensure_consumer"),
    (driver.AIOKafkaConsumerThread, "_fetch_records"),
    (AIOKafkaConsumer, "_coordinator"),
    (AIOKafkaConsumer, "_fetcher"),
    (fetcher.Fetcher, "_fetch_max_wait_ms"),
    (fetcher.Fetcher, "_prefetch_backoff"),
    (GroupCoordinator, "generation"),
    (GroupCoordinator, "check_errors"),
    (driver.Consumer, "_new_consumer_thread"),
    (faust_transport.ThreadDelegateConsumer, "_thread"),
    (ServiceThread, "thread_loop"),
    (ServiceThread, "_stopped_set"),
    (ServiceThread, "_stopped"),
    (ServiceThread, "_shutdown"),
    (driver.Consumer, "_get_active_partitions"),
    (driver.Consumer, "_commit"),
    (driver.Consumer, "_drain_messages"),
    (driver.Consumer, "_commit_livelock_detector"),
    (driver.Consumer, "perform_seek"),
    (driver.Consumer, "wait_empty"),
    (driver.Consumer, "force_commit"),
    (driver.Consumer, "maybe_wait_for_commit_to_finish"),
    (faust_transport.Consumer, "flow_active"),
    (faust_transport.Consumer, "can_resume_flow"),
    (driver.Consumer, "stop_flow"),
    (driver.Consumer, "on_partitions_revoked"),
    (driver.Consumer, "on_partitions_assigned"),
    (driver.Consumer, "close"),
    (faust.App, "consumer_generation_id"),
    (driver.Producer, "_settings_extra"),
    (driver.Transport, "Consumer"),
    (driver.Transport, "Producer"),
]
USED_ELSEWHERE = [
    (faust.App, "_create_directories"),
    (faust.Worker, "_crash"),
    (faust.Worker, "_gather_all"),
    (faust.Worker, "_sentinel_task"),
    (faust.Worker, "crash_reason"),
    (faust.Worker, "_signal_stop_time"),
    (faust.Worker, "_starting_fut"),
    (faust.Worker, "spinner"),
    (AIOKafkaConsumer, "_client"),
    (AIOKafkaClient, "close"),
    (AIOKafkaAdminClient, "_send_request"),
    (AIOKafkaConnection, "authenticator_oauth"),
    (AIOKafkaConnection, "_sasl_oauth_token_provider"),
    (fetcher, "MemoryRecords"),
]
USED = USED_BY_OUR_CONSUMER + USED_ELSEWHERE


def test_the_private_names_that_we_use_exist() -> None:
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


def test_a_table_says_why_our_consumer_uses_each_name() -> None:
    table = str(faust_consumer.__doc__)
    assert [name for _, name in USED_BY_OUR_CONSUMER if f".{name}`" not in table] == []
