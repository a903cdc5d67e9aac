"""Workers on Kafka compare documents with the collections that they name, and commands with those of `--against`."""

import json
from pathlib import Path

from msgspec import UNSET

from tests.support.deployment import TEXTS, LocalDeployment, deployed

KNOWN, OTHER, CAMPAIGN = (" ".join(text.split())[:3000] for text in TEXTS[:3])
ITEM = "Which river did the old bridge of the lower town cross before the flood took it away?"
OWN = "What I add here are words of my own, which nobody has written down before me."


def _line(name: str, text: str, **fields: object) -> bytes:
    return json.dumps({"id": name, "text": text, **fields}).encode()


async def test_a_verdict_names_the_reference_which_learns_nothing_and_commands_compare_with_it(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path, references="items") as deployment:
        with deployment.worker(), deployment.worker():
            references = [_line("good-1", KNOWN, collection="good"), _line("bad-1", CAMPAIGN, collection="bad")]
            references += [_line("item", ITEM, collection="items")]
            await deployment.send(deployment.examples(references))
            await deployment.drained()
            _commands_compare(deployment, tmp_path / "own.txt")
            asked = deployment.examples(
                [
                    _line("both", f"{OWN} {KNOWN} {CAMPAIGN}", against=["good", "bad"]),
                    _line("one", KNOWN, against=["good"]),
                    _line("none", OTHER, against=["good", "bad"]),
                    _line("short", f"{OTHER} {ITEM} {OWN}", against=["items"]),
                    _line("absent", KNOWN, against=["nobody"]),
                    _line("alone", CAMPAIGN),
                    _line("many", OTHER, against=["a", "b", "c", "d", "e"]),
                ]
            )
            text = deployment.examples([_line("header", "")])[0]._replace(value=CAMPAIGN.encode())
            named = [("content-type", b"text/plain"), ("nearstream-id", b"header"), ("nearstream-against", b"bad good")]
            asked.append(text._replace(headers=named))
            await deployment.send(asked)
            await deployment.drained()
            await deployment.send(deployment.examples([_line("good-2", KNOWN, collection="good")]))
            await deployment.drained()
        verdicts = {each.id: each for each in await deployment.verdicts()}
        found = {
            name: None if each.references is UNSET else [(one.collection, one.relation) for one in each.references]
            for name, each in verdicts.items()
            if each.collection == "default"
        }
        assert found == {
            "both": [("good", "containment"), ("bad", "containment")],
            "one": [("good", "exact_duplicate")],
            "none": [],
            "short": [("items", "containment")],
            "absent": [],
            "alone": None,
            "header": [("bad", "exact_duplicate")],
        }
        of = verdicts["good-2"].of
        assert of is not None
        assert (of.id, verdicts["good-2"].family.ordinal) == ("good-1", 2)
        assert {each.collection for each in await deployment.events()} <= {"default", "good"}
        assert len(await deployment.letters()) == 1


def _commands_compare(deployment: LocalDeployment, path: Path) -> None:
    path.write_text(f"{OWN} {KNOWN}")
    assert deployment.run("check", str(path), "--bare").stdout == b"no\n"
    assert deployment.run("check", str(path), "--bare", "--against", "good,bad").stdout == b"yes\n"
    path.with_name("item.txt").write_text(f"{CAMPAIGN} {ITEM} {OWN}")
    assert deployment.run("check", str(path.with_name("item.txt")), "--bare", "--against", "items").stdout == b"yes\n"
    shown = deployment.run("check", str(path), "--against", "bad,good")
    assert (shown.returncode, shown.stdout.split()[0]) == (0, b"unique")
    assert b"good/good-1" in shown.stdout
    assert b"bad/" not in shown.stdout
    assert deployment.run("check", str(path), "--against", "nobody").returncode == 1
    (answer,) = map(json.loads, deployment.run("check", str(path), "--json", "--against", "good").stdout.splitlines())
    assert [each["id"] for each in answer["references"]] == ["good-1"]
    for against, parts in (("bad", [f"{OWN} {KNOWN}"]), ("good", [OWN])):
        told = deployment.run("check", "--novel", str(path), "--json", "--against", against)
        (found,) = map(json.loads, told.stdout.splitlines())
        assert [part["text"].strip() for part in found["parts"]] == parts, found
