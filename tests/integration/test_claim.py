"""A worker does not start with settings that differ from those of the other workers."""

from pathlib import Path

from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.pipeline.deployment import Deployment
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, LocalDeployment, deployed, until

OTHER_KEY = "another key, of thirty-two bytes"


async def _has_signed(deployment: LocalDeployment, count: int) -> bool:
    return len(await deployment.read(SIGNATURES.name)) >= count


def _refusal(deployment: LocalDeployment, *command: str) -> str:
    """Return the line with which a start is refused."""
    done = deployment.run(*command)
    assert done.returncode == Exit.MISCONFIGURED
    (line,) = [line for line in done.stderr.decode().splitlines() if line.startswith("nearstream: ")]
    return line.removeprefix("nearstream: ")


async def test_f23_a_worker_with_another_scheme_or_key_is_refused_until_the_former_one_is_forgotten(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        mistaken = deployment.changed(scheme="compact")
        scheme, ours = (Deployment.of(each.settings).scheme.name for each in (mistaken, deployment))
        topic = deployment.topic(SIGNATURES)
        with mistaken.worker("sign"):
            await deployment.send(deployment.examples(LINES[:3]))
            await until(lambda: _has_signed(deployment, 3))
        assert f"run `nearstream index drop {scheme}`" in _refusal(deployment, "worker")
        assert deployment.run("index", "drop", "compact-9").returncode == Exit.NO
        done = deployment.run("index", "drop", scheme)
        forgot = f"forgot that {topic} has this scheme\n{topic} has the scheme {ours} now\n"
        assert (done.returncode, done.stdout.decode()) == (0, forgot)
        with deployment.worker("sign"), deployment.worker("match"):
            await deployment.send(deployment.examples(LINES[3:40]))
            await deployment.drained()
            assert len(await deployment.letters()) == 3
            await deployment.send(deployment.examples(LINES[:3]))  # what was signed wrong is sent again
            await deployment.drained()
            for changed, role, named in (
                ({"scheme": "compact"}, "sign", "NEARSTREAM_SCHEME: "),
                ({"hash_key": OTHER_KEY}, "match", "NEARSTREAM_HASH_KEY: "),
            ):
                other = deployment.changed(**changed)
                told = _refusal(other, "worker", role)
                assert told.startswith(named)
                assert ours in told
                assert OTHER_KEY not in told
            doctor = other.run("doctor")
            assert doctor.returncode == Exit.NO
            assert f"FAIL  workers   {told}" in doctor.stdout.decode()
            well = deployment.run("doctor").stdout.decode()
            assert f"OK    workers   group {deployment.settings.group}, scheme {ours}" in well
        assert len({verdict.id for verdict in await deployment.verdicts()}) == 40


async def test_f23_another_group_namespace_or_topic_is_refused_until_it_is_meant(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as first:
        with first.worker():
            await first.send(first.examples(LINES[:60]))
            await first.drained()
        sent = await first.events()
        assert sent
        group, namespace, topic = first.settings.group, first.settings.namespace, first.topic(SIGNATURES)
        mistyped = first.changed(namespace=f"{namespace}-x")
        told = _refusal(mistyped, "worker")
        assert told.startswith(
            f"NEARSTREAM_NAMESPACE: group {group} has matched {topic}"
            f" before, but {mistyped.settings.namespace} in Redis holds no index: restore the former value"
        )
        assert f"FAIL  index     {told}" in mistyped.run("doctor").stdout.decode()
        # The offsets of a second deployment would be taken for repeats, so its documents would be lost.
        other = first.changed(topic_prefix=f"{first.settings.topic_prefix}other.", group=f"{group}-other")
        assert other.run("topics", "create").returncode == 0
        told = _refusal(other, "worker")
        assert f"is filled from {topic} by group {group}" in told
        assert "NEARSTREAM_NAMESPACE to a name of its own" in told
        second = first.changed(group=f"{group}-b")
        for role, topics in (("sign", [DOCUMENTS]), ("match", [SIGNATURES]), ("all", [DOCUMENTS, SIGNATURES])):
            told = _refusal(second, "worker", role)
            assert told.startswith(f"NEARSTREAM_GROUP: {topic} and {namespace}")
            assert f"belong to group {group}, got {second.settings.group}" in told
            names = " and ".join(map(first.topic, topics))
            assert told.endswith(f"reads all of {names} from the start and sends all events again")
        assert f"FAIL  workers   {told}" in second.run("doctor").stdout.decode()
        with second.worker(program=("nearstream", "worker", "--new-group")):
            await second.send(second.examples(LINES[60:80]))
            await second.drained()
        assert len(await second.events()) >= 2 * len(sent)
        assert await disagreement(second) == {}
        assert _refusal(first, "worker").startswith("NEARSTREAM_GROUP: ")


async def test_a_worker_that_only_signs_is_refused_where_its_namespace_knows_no_scheme(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    """Without the record of the deployment it could not see that scheme or key are wrong."""
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker("sign"):
            await deployment.send(deployment.examples(LINES[:20]))
            await until(lambda: _has_signed(deployment, 20))
        # A namespace that nobody has used stands for a Redis that came back empty.
        ours = deployment.changed(namespace=f"{deployment.settings.namespace}-empty")
        other = ours.changed(hash_key=OTHER_KEY)
        told = _refusal(other, "worker", "sign")
        assert told.startswith(
            f"NEARSTREAM_NAMESPACE: group {ours.settings.group} has read {ours.topic(DOCUMENTS)}"
            f" before, but {ours.settings.namespace} in Redis does not know its scheme: restore the former"
        )
        assert _refusal(ours, "worker", "sign") == told
        assert f"FAIL  workers   {told}" in other.run("doctor").stdout.decode()
        refused = _refusal(other, "rebuild")
        assert refused.startswith("NEARSTREAM_SCHEME, NEARSTREAM_HASH_KEY: the signatures on ")
        assert Deployment.of(ours.settings).scheme.name in refused
        assert ours.run("rebuild").returncode == 0
        assert _refusal(other, "worker", "sign").startswith("NEARSTREAM_HASH_KEY: ")
        with ours.worker():
            await ours.send(ours.examples(LINES[20:40]))
            await ours.drained()
        assert await ours.letters() == []
        assert await disagreement(ours) == {}
