"""`explain` and `why-not` on files and signatures, without a server."""

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import encode_signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.workers.cli.demo import EXAMPLES
from nearstream.workers.cli.main import main

KEY = HashKey.public()
ROWS = {row["id"]: row for row in map(json.loads, (EXAMPLES / "documents.jsonl").read_bytes().splitlines())}
EXAMPLE = ("pep-0360@2017-03", "pep-0360@2006-05")


def written(folder: Path, name: str, **fields: str) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"id": name, **fields}))
    return str(path)


def of_examples(folder: Path, *names: str) -> list[str]:
    wanted = ("text", "observed_at", "collection")
    return [written(folder, name, **{key: ROWS[name][key] for key in wanted if key in ROWS[name]}) for name in names]


def prose(seed: int, count: int) -> list[str]:
    random = Random(seed)
    return ["".join(random.choices("etaoinshrdlu", k=random.randint(3, 9))) for _ in range(count)]


def sharing_little(folder: Path) -> list[str]:
    """Write two texts that share an anchor in a passage too short for any rule."""
    scheme = preset("dense", KEY)
    signer = Signer(scheme, KEY)
    for seed in range(200):
        passage = prose(seed, 11)
        texts = [" ".join((*prose(1000 + seed, 60), *passage, *prose(2000 + seed, 60)))]
        texts.append(" ".join((*prose(3000 + seed, 60), *passage, *prose(4000 + seed, 60))))
        one, other = (
            scheme.keys(signer.sign(Document(id="a", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))), KEY)
            for text in texts
        )
        if set(one.anchors) & set(other.anchors):
            return [written(folder, name, text=text) for name, text in zip("ab", texts, strict=True)]
    raise AssertionError("no passage of 11 words was chosen as an anchor")


def files(folder: Path, tier: str) -> list[str]:
    """Write two files whose pair is lost in a tier."""
    text = " ".join(prose(1, 80))
    if tier == "too_short":
        return [written(folder, "a", text="too few words"), written(folder, "b", text=text)]
    if tier == "other_collection":
        return [written(folder, "a", text=text), written(folder, "b", text=text, collection="mail")]
    if tier == "other_scheme":
        signature = Signer(preset("compact", KEY), KEY).sign(
            Document(id="foreign", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
        )
        (folder / "foreign.msgpack").write_bytes(encode_signature(signature))
        return [str(folder / "foreign.msgpack"), written(folder, "b", text=text)]
    if tier == "no_rule":
        return sharing_little(folder)
    names = {
        "no_shared_key": ("congress-1991-bush", "sotu-1974-nixon"),
        "relation_not_sent": ("congress-1981-reagan-excerpt-b", "congress-1981-reagan-excerpt-a"),
        "related": EXAMPLE,
    }
    return of_examples(folder, *names[tier])


REASONS = {
    "other_scheme": "foreign has compact-1-",
    "other_collection": "one is in default, the other in mail",
    "too_short": "the shorter has 3 words, 8 expected",
    "no_shared_key": "0 of 4 bands and 0 of 167 anchors shared; at resemblance 0.0",
    "no_rule": "shared_passage (overlap) is nearest, which needs ",
    "relation_not_sent": "overlap is not in NEARSTREAM_RELATIONS",
    "related": "version, by spread_edits",
}


@pytest.mark.parametrize("tier", REASONS)
def test_why_not_names_the_tier_that_lost_the_pair(
    tier: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = files(tmp_path, tier)
    if tier == "relation_not_sent":
        monkeypatch.setenv("NEARSTREAM_RELATIONS", "version")
    for asked in (pair, pair[::-1]):
        assert main(["why-not", *asked, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["tier"] == tier
        assert REASONS[tier] in told["reason"]
        assert bool(told["event_id"]) == (tier in ("relation_not_sent", "related"))
    assert main(["why-not", *pair]) == 0
    assert capsys.readouterr().out.startswith(f"{tier}: {told['reason']}")


def test_a_short_text_without_spaces_is_measured_in_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "学而时习之不亦说乎有朋自远方来不亦乐乎人不知而不愠不亦君子乎"
    pair = [written(tmp_path, "a", text=long[:9]), written(tmp_path, "b", text=long)]
    assert main(["why-not", *pair]) == 0
    assert "the shorter has no spaces and 27 bytes, 40 expected" in capsys.readouterr().out


def test_explain_shows_both_documents_every_rule_and_the_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = of_examples(tmp_path, *EXAMPLE)
    assert main(["explain", *pair, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(["compare", *pair, "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert (told["relation"], told["rule"], told["evidence"]) == ("version", "spread_edits", compared["evidence"])
    assert told["event_id"] == compared["event"]["event_id"]
    assert told["novelty"]["added"]["low"] <= told["novelty"]["added"]["value"] <= told["novelty"]["added"]["high"]
    assert not told["novelty"]["redundant"]
    assert (told["later"]["name"], told["earlier"]["name"]) == tuple(pair)
    names = [rule["rule"] for rule in told["rules"]]
    assert names[:5] == ["equal_digest", "same_lineage", "too_short", "few_edits", "scattered_noise"]
    first = next(rule for rule in told["rules"] if rule["holds"])
    assert first["rule"] == "spread_edits"
    assert first["conditions"][0][0]["threshold"] == "version_min"

    assert main(["explain", *pair]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "rule             spread_edits (version): decides" in lines
    assert "keys shared      0 of 4 bands, 21 anchors" in lines
    assert any(line.startswith(f"new in later     {told['novelty']['added']['value']} characters (") for line in lines)
    assert lines[-1].startswith(f"event            {told['event_id']}, not known whether it was sent")


def test_explain_of_what_cannot_be_compared_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *files(tmp_path, "other_scheme")]) == 0
    assert "outcome          other_scheme: foreign has compact-1-" in capsys.readouterr().out


def test_a_file_without_a_signature_is_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken, other = tmp_path / "broken.msgpack", of_examples(tmp_path, EXAMPLE[0])[0]
    broken.write_bytes(b"\xc1")
    for command in ("explain", "why-not"):
        assert main([command, str(broken), other]) == 65
        assert "broken.msgpack: " in capsys.readouterr().err
