"""Families of the shared index, as commands tell them."""

import json
from pathlib import Path

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS
from tests.support.deployment import TEXTS, LocalDeployment, deployed


def _documents(deployment: LocalDeployment, texts: dict[str, str]) -> list[ProducerRecord]:
    topic = deployment.topic(DOCUMENTS)
    contents = [(name, json.dumps({"id": name, "text": text}).encode()) for name, text in texts.items()]
    return [ProducerRecord(topic, name.encode(), value, []) for name, value in contents]


async def test_stats_and_show_tell_the_family_of_a_document(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        empty = deployment.run("stats")
        assert empty.returncode == 78
        assert b"holds no index" in empty.stderr
        with deployment.worker():
            for number in range(4):
                await deployment.send(_documents(deployment, {f"a{number}": TEXTS[0]}))
                await deployment.drained()
            await deployment.send(_documents(deployment, {"b0": TEXTS[1], "alone": TEXTS[2]}))
            await deployment.drained()
            await deployment.send(_documents(deployment, {"b1": TEXTS[1]}))
            await deployment.drained()

        large, small = json.loads(deployment.run("stats", "--json").stdout)["top"]
        assert (large["founder"], large["size"], large["joined"]) == (
            "default/a0",
            4,
            {"hour": 3, "day": 3, "week": 3},
        )
        assert (small["founder"], small["size"], small["joined"]["hour"]) == ("default/b0", 2, 1)
        verdicts = {verdict.id: verdict for verdict in await deployment.verdicts()}
        assert {verdicts[name].family.id for name in ("a0", "a1", "a2", "a3")} == {large["id"]}
        assert len(json.loads(deployment.run("stats", "--top", "1", "--json").stdout)["top"]) == 1
        plain = deployment.run("stats", "--quiet")
        assert (plain.returncode, plain.stderr) == (0, b"")
        lines = plain.stdout.decode().splitlines()
        assert lines[5] == "the largest families:"
        assert [line.split()[-1] for line in lines if "default/" in line] == ["default/a0", "default/b0"] * 2

        told = json.loads(deployment.run("show", "a2", "--json").stdout)["states"][0]["family"]
        assert (told["id"], told["ordinal"], told["size"]) == (large["id"], 3, 4)
        assert f"family           {large['id']}, no. 3, 4 live" in deployment.run("show", "a2").stdout.decode()
        assert "family           its own" in deployment.run("show", "alone").stdout.decode()


async def test_a_removal_leaves_the_family_and_its_founder_unnamed(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker():
            for number in range(3):
                await deployment.send(_documents(deployment, {f"a{number}": TEXTS[0]}))
                await deployment.drained()
            before = json.loads(deployment.run("stats", "--json").stdout)["top"][0]
            assert deployment.run("remove", "a0").returncode == 0
            await deployment.drained()
            after = json.loads(deployment.run("stats", "--json").stdout)["top"][0]
        assert (before["founder"], before["size"]) == ("default/a0", 3)
        assert (after["id"], after["founder"], after["size"]) == (before["id"], None, 2)
        assert after["representative"] not in (None, before["representative"])
