"""An index on a Redis Cluster whose primaries are killed and whose slots move."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from nearstream.workers.pipeline.deployment import Deployment
from tests.devstack.server import LocalServer
from tests.fault.conftest import Stage
from tests.fault.corpus import storm, traced
from tests.fault.runner import Run, logged
from tests.support.cluster import move_slot, owner, promote, redis_cluster, rejoin
from tests.support.deployment import until

SLOTS = 4
_COPIES = 50
# What may be wrong without confirmed writes, since what was decided in the gap may be decided twice.
IN_THE_GAP = {"differing values", "doubled ordinals", "split families", "hasty commits"}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LocalServer]]:
    """Return the nodes of a cluster with a replica of each primary."""
    with redis_cluster(tmp_path_factory.mktemp("cluster"), replicas=True) as servers:
        yield servers


def _settings(nodes: Sequence[LocalServer], **further: str) -> dict[str, str]:
    url = f"redis+cluster://{nodes[0].address}"
    return {"redis_url": url, "index_slots": str(SLOTS), "index_documents": "10000", **further}


def _tag(run: Run, slot: int) -> str:
    return Deployment.of(run.deployment.settings).index_address().tag(slot).decode()


@pytest.mark.parametrize("replicas", ["1", pytest.param("0", marks=pytest.mark.long)])
async def test_f43_a_primary_that_dies_in_a_storm_pauses_all_until_its_replica_is_promoted(
    stage: Stage, nodes: list[LocalServer], seed: int, replicas: str
) -> None:
    async with stage("F43", most=100, **_settings(nodes, redis_wait=replicas)) as run:
        run.documents += traced(run.topic, storm(_COPIES, seed + 1))
        async with run.load():
            await asyncio.sleep(1)
            owners = [await asyncio.to_thread(owner, nodes, _tag(run, slot)) for slot in range(SLOTS)]
            slot, killed = next((slot, one) for slot, one in enumerate(owners) if one is not nodes[0])
            await asyncio.to_thread(killed.kill)
            await until(lambda: logged(run, "Redis does not answer"))
            await asyncio.to_thread(promote, nodes, killed, _tag(run, slot))
            await asyncio.to_thread(rejoin, killed)
        await run.ends_well(allowed=IN_THE_GAP if replicas == "0" else ())


@pytest.mark.long
async def test_f44_slots_that_move_to_another_server_pause_all_for_a_moment(
    stage: Stage, nodes: list[LocalServer]
) -> None:
    async with stage("F44", most=400, **_settings(nodes)) as run:
        async with run.load():
            for slot in range(2):
                former = await asyncio.to_thread(owner, nodes, _tag(run, slot))
                await asyncio.to_thread(move_slot, nodes, _tag(run, slot))
                assert await asyncio.to_thread(owner, nodes, _tag(run, slot)) is not former
        await run.ends_well()
