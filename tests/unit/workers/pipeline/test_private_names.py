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


def _names(used: dict[type | ModuleType, str]) -> list[tuple[type | ModuleType, str]]:
    return [(owner, name) for owner, names in used.items() for name in names.split()]


USED_BY_OUR_CONSUMER = _names(
    {
        driver.AIOKafkaConsumerThread: "on_start on_thread_stop commit _commit _ensure_consumer _fetch_records",
        AIOKafkaConsumer: "_coordinator _fetcher",
        fetcher.Fetcher: "_fetch_max_wait_ms _prefetch_backoff",
        GroupCoordinator: "generation check_errors",
        driver.Consumer: (
            "_new_consumer_thread _get_active_partitions _commit _drain_messages _commit_livelock_detector"
            " perform_seek wait_empty force_commit maybe_wait_for_commit_to_finish stop_flow"
            " on_partitions_revoked on_partitions_assigned close"
        ),
        faust_transport.ThreadDelegateConsumer: "_thread",
        ServiceThread: "thread_loop _stopped_set _stopped _shutdown",
        faust_transport.Consumer: "flow_active can_resume_flow",
        faust.App: "consumer_generation_id",
        driver.Producer: "_settings_extra",
        driver.Transport: "Consumer Producer",
    }
)
USED_ELSEWHERE = _names(
    {
        faust.App: "_create_directories",
        faust.Worker: "_crash _gather_all _sentinel_task crash_reason _signal_stop_time _starting_fut spinner",
        AIOKafkaConsumer: "_client",
        AIOKafkaClient: "close",
        AIOKafkaAdminClient: "_send_request",
        AIOKafkaConnection: "authenticator_oauth _sasl_oauth_token_provider",
        fetcher: "MemoryRecords",
    }
)
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
