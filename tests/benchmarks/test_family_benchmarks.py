"""The benchmarks of families feed documents through a matcher and compare figures with goals."""

import json
from pathlib import Path

import pytest

from benchmarks.families import __main__ as families
from benchmarks.families import labelled, stored, storms
from benchmarks.families.feeding import signed, sizes
from benchmarks.families.goals import at_least, at_most
from benchmarks.families.texts import edited_in_one_place, mails, revisions, unique, varied
from benchmarks.quality.corpus import read_pairs, read_texts
from nearstream.streams.matching.protocol import picking

PAIRS = Path(__file__).parents[1] / "data" / "pairs"


def common(one: str, other: str) -> float:
    """Return the share of the words of one text that are in the other."""
    words = one.split()
    return len(set(words) & set(other.split())) / len(set(words))


def test_mails_of_one_body_differ_in_a_few_words_and_those_of_variants_in_half() -> None:
    one, other = mails(2, 1)
    assert one != other
    assert common(one, other) > 0.95
    several = list(mails(20, 8))
    assert 0.5 < min(common(several[0], each) for each in several[1:]) < 0.9


def test_texts_are_edited_by_the_share_that_is_asked_for() -> None:
    (text,) = unique(1, 700, 1)
    changed = edited_in_one_place(text, 0.10, 1)
    differing = [at for at, (a, b) in enumerate(zip(text.split(), changed.split(), strict=True)) if a != b]
    assert 60 <= len(differing) <= 70
    assert differing[-1] - differing[0] < 70
    first, second, *_ = varied(3, 700, 0.015)
    assert 0.95 < common(first, second) < 1


def test_each_state_of_a_file_changes_a_little_of_the_one_before_it() -> None:
    states = list(revisions(2, 5))
    assert len(states) == 10
    assert all(0.85 < common(states[at], states[at + 2]) < 1 for at in range(8))
    assert common(states[0], states[1]) < 0.5


def test_equal_texts_have_one_event_each() -> None:
    figures = storms.equal_texts()
    assert figures["events"] == storms.EQUAL - 1
    assert figures["families_of_several"] == 1
    assert 100_000 < figures["bytes_sent"] < 1_000_000


def test_a_campaign_is_one_family_for_each_variant() -> None:
    fed = storms.fed_one_by_one(mails(60, 1))
    assert list(sizes(fed.families).values()) == [60]
    assert (len(fed.events), fed.full_buckets) == (59, 0)
    every = storms.fed_one_by_one(mails(60, 1), events_per_family=0)
    assert every.families == fed.families
    assert len(every.events) > 5 * len(fed.events)
    assert all(fed.connects(*both) for both in every.paired)


def test_partitions_agree_if_they_put_equal_documents_together() -> None:
    one, other = {"a": "1", "b": "1", "c": "2", "d": "3"}, {"a": "x", "b": "x", "c": "y", "d": "y"}
    assert labelled.agreement(one, one) == {"rand": 1.0, "jaccard": 1.0}
    assert labelled.agreement(one, other) == {"rand": round(5 / 6, 6), "jaccard": 0.5}


def test_another_choice_ends_with_its_block() -> None:
    before = picking.FAMILY_CANDIDATES
    with labelled.choice(100):
        fed = storms.fed_one_by_one(varied(20, 700, 0.03))
        assert picking.FAMILY_CANDIDATES == 100
    assert fed.comparisons > storms.fed_one_by_one(varied(20, 700, 0.03)).comparisons
    assert before == picking.FAMILY_CANDIDATES


def test_a_goal_says_whether_it_is_reached() -> None:
    assert at_most(1_000, 1_000) == {"value": 1_000, "goal": "<= 1,000", "reached": True}
    assert at_least(0.8, 0.88)["reached"] is False
    assert at_least(None, 0.88)["reached"] is None


async def test_copies_cost_less_on_a_server_than_unique_documents() -> None:
    texts = list(unique(40, stored.WORDS, 1))
    with stored.own_server() as (server, url):
        index = await stored.opened(url, 80, 1)
        try:
            store = index.store()
            _, first = await stored.cost(server, store, signed(texts))
            fed, second = await stored.cost(server, store, signed(texts, "copy"))
        finally:
            await index.close()
    assert second["commands"] < first["commands"]
    assert (second["events_per_document"], len(fed.families)) == (1.0, 40)


def test_the_command_reports_the_goals_of_labelled_documents(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelled, "CHOICES", (1, 2))
    assert families.main(["--corpus", str(PAIRS), "--seeds", "1", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert all(goal["reached"] for goal in told["goals"].values())
    assert told["by_seed"].keys() == {"1", "2"}
    assert told["agreement"] == [{"rand": 1.0, "jaccard": 1.0, "differing": 0.0}]
    assert told["choices"].keys() == {"K 1", "K 2"}
    assert told["all_pairs"]["events_per_document"] > told["by_seed"]["1"]["events_per_document"]
    assert families.main(["--corpus", str(tmp_path)]) == 2
    assert "docs.jsonl.gz" in capsys.readouterr().err


def test_documents_of_one_family_are_what_their_texts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelled, "_SAMPLED", 500)
    known = labelled.Labelled.of(read_texts(PAIRS), read_pairs(PAIRS), 1_000)
    everything = dict.fromkeys(known.signatures, "one family")
    found = labelled.within(known, everything)["in_one_family"]
    assert found["unrelated"] > 0.8
    assert found["copies"] < 0.1
