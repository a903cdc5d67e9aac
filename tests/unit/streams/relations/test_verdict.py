"""The verdicts about pairs of texts with a known relation."""

from itertools import chain
from pathlib import Path
from random import Random
from statistics import fmean

import pytest
from msgspec.structs import replace as replace_fields
from rapidfuzz.distance import Levenshtein

from nearstream.schemas.documents.document import SENDER_DOMAIN_LABEL
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.relations.describe import CONFIDENCE
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.relations.verdict import Verdict, relate
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from tests.support.made_up import sign, with_noise, words


def verdict(newer: list[str] | str, older: list[str] | str, thresholds: Thresholds = Thresholds()) -> Verdict:  # noqa: B008
    one, other = sign(newer, "b"), sign(older, "a")
    return relate(one, other, estimate(one, other), thresholds)


def edited_everywhere(text: list[str], every: int, length: int) -> list[str]:
    result = text.copy()
    for place in range(every // 2, len(text) - length, every):
        result[place : place + length] = words(5000 + place, length)
    return result


LONG = words(1, 1500)
SAMPLES = {
    "equal_digest": (LONG, " ".join(LONG).upper()),
    "too_short": (words(2, 6), words(2, 7)),
    "few_edits": (edited_everywhere(LONG, 150, 2), LONG),
    "scattered_noise": (with_noise(" ".join(LONG), 0.19, 1), LONG),
    "no_common_text": (LONG, words(3, 1500)),
    "reordered": (LONG[900:] + LONG[:900], LONG),
    "covered": (LONG[300:600], LONG),
    "spread_edits": (edited_everywhere(LONG, 60, 25), LONG),
    "shared_passage": (LONG[:600] + words(4, 900), words(5, 900) + LONG[:600]),
}
RELATIONS = {
    "equal_digest": "exact_duplicate",
    "too_short": "unrelated",
    "few_edits": "near_duplicate",
    "scattered_noise": "version",
    "no_common_text": "unrelated",
    "reordered": "rearranged",
    "covered": "containment",
    "spread_edits": "version",
    "shared_passage": "overlap",
}
RANGES = {
    "few_edits": {"distance_ratio_max": 0.15, "symbols_min": 4.0},
    "scattered_noise": {
        "noise_ratio_max": 0.5,
        "length_ratio_min": 0.5,
        "version_min": 0.25,
        "symbols_min": 4.0,
        "noise_spread_min": 0.6,
    },
    "reordered": {"length_ratio_min": 0.5, "reordered_min": 0.3, "order_gap": 0.2},
    "covered": {"containment_min": 0.7, "length_ratio_max": 0.85, "segment_cover_min": 0.65, "small_ratio": 0.3},
    "spread_edits": {"version_min": 0.25, "spread_min": 0.5, "segment_share_max": 0.9, "wide_spread": 0.75},
    "shared_passage": {"order_free_min": 0.09, "symbols_min": 4.0, "common_words_min": 12.0},
    "no_common_text": {"order_free_min": 0.09, "symbols_min": 4.0, "common_words_min": 12.0},
}


@pytest.mark.parametrize("rule", SAMPLES)
def test_every_rule_is_reached_by_a_sample(rule: str) -> None:
    found = verdict(*SAMPLES[rule])
    assert (found.rule, found.relation) == (rule, RELATIONS[rule])
    assert found.thresholds == RANGES.get(rule, {})
    assert found.inner == ("newer" if rule == "covered" else None)
    assert ("char_noise" in found.low_confidence) == (rule == "scattered_noise")
    assert all(isinstance(bound, float) for bound in found.thresholds.values())


def test_same_lineage_with_other_content_is_a_version_even_without_common_text() -> None:
    one, other = sign(LONG, "b", lineage="x"), sign(words(3, 900), "a", lineage="x")
    found = relate(one, other, estimate(one, other))
    assert (found.relation, found.rule, found.same_lineage, found.thresholds) == ("version", "same_lineage", True, {})
    two_states = sign("yes"), sign("no")
    assert relate(*two_states, estimate(*two_states)).rule == "same_lineage"


def test_pages_of_one_site_are_no_versions_of_each_other() -> None:
    for sample in ("spread_edits", "scattered_noise"):
        newer, older = SAMPLES[sample]
        for lineage, relations in (
            ("https://www.a.example/2", {"overlap", "unrelated"}),
            ("https://b.example/2", {"version"}),
            ("a.example/2", {"version"}),
        ):
            one, other = sign(newer, "b", lineage=lineage), sign(older, "a", lineage="https://a.example/1")
            assert relate(one, other, estimate(one, other)).relation in relations
    newer, older = SAMPLES["few_edits"]
    copies = sign(newer, "b", lineage="https://a.example/2"), sign(older, "a", lineage="https://a.example/1")
    assert relate(*copies, estimate(*copies)).relation == "near_duplicate"


def test_reports_that_differ_in_two_words_are_near_duplicates_at_their_distance() -> None:
    """The band is meant to hold the true distance in .9 of all cases."""
    errors, held = [], []
    for seed in range(60):
        report, new = words(seed, 58), words(900 + seed, 2)
        other = report.copy()
        for place, word in zip(Random(seed).sample(range(58), 2), new, strict=True):
            other[place] = word
        found = verdict(other, report)
        true = Levenshtein.distance(" ".join(other), " ".join(report))
        assert (found.relation, found.rule) == ("near_duplicate", "few_edits")
        numbers = found.estimate
        errors.append(numbers.changed_characters - true)
        held.append(round(numbers.low) <= true <= max(round(numbers.high), numbers.changed_characters))
    assert abs(fmean(errors)) < 4  # of 400 characters
    assert fmean(map(abs, errors)) < 5
    assert fmean(held) >= 0.9


def test_what_is_added_to_a_whole_text_is_a_containment() -> None:
    grown = [([*LONG[:60], *words(8, added)], LONG[:60]) for added in (12, 40, 200)]
    for newer, older in (*grown, ([*words(10, 700), *LONG[:600], *words(11, 700)], LONG[:600])):
        found = verdict(newer, older)
        assert (found.relation, found.inner) == ("containment", "older")


def test_an_empty_lineage_is_none() -> None:
    one, other = (replace_fields(sign(text, name), lineage="") for text, name in ((LONG, "a"), (words(3, 900), "b")))
    assert relate(one, other, estimate(one, other)).relation == "unrelated"


def test_shuffled_paragraphs_are_rearranged_but_one_moved_sentence_is_not() -> None:
    paragraphs = [words(seed, 150) for seed in range(20, 30)]
    shuffled = paragraphs.copy()
    Random(1).shuffle(shuffled)
    assert verdict(list(chain(*shuffled)), list(chain(*paragraphs))).relation == "rearranged"
    assert verdict([*LONG[20:900], *LONG[:20], *LONG[900:]], LONG).relation == "near_duplicate"


@pytest.mark.parametrize("count", [20, 40])
def test_short_sentences_in_another_order_are_rearranged(count: int) -> None:
    for seed in range(10):
        draw = Random(seed)
        rows = [" ".join(words(draw.randrange(1 << 32), draw.randint(6, 12))) for _ in range(count)]
        for other in (sorted(rows), rows[::-1], draw.sample(rows, count)):
            assert verdict("\n".join(other), "\n".join(rows)).relation == "rearranged", seed


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("count", [10, 20, 200])
def test_short_rows_in_another_order_are_rearranged_and_new_rows_are_not(count: int, size: int) -> None:
    rows = [" ".join(words(seed, size)) for seed in range(count)]
    kept, new = rows[count // 5 :], [" ".join(words(seed, size)) for seed in range(900, 900 + count // 5)]
    older = sign("\n".join(rows), "a")
    for other in (rows[::-1], sorted(rows), Random(1).sample([*kept, *new], count)):
        newer = sign("\n".join(other), "b")
        assert relate(newer, older, estimate(newer, older)).relation == "rearranged"
        assert len({*anchors_of(newer)} & {*anchors_of(older)}) >= min(4, count // 5)
    changed = sign("\n".join([*kept, *new]), "b")
    assert relate(changed, older, estimate(changed, older)).relation != "rearranged"


def anchors_of(signature: Signature) -> list[bytes]:
    return [signature.anchors[at : at + 8] for at in range(0, len(signature.anchors), 8)]


@pytest.mark.parametrize("label", ["fine", "mail"])
@pytest.mark.parametrize("changed", range(1, 7))
def test_texts_of_one_template_get_one_answer_under_any_key(changed: int, label: str) -> None:
    report = words(changed, 40)
    places = Random(changed).sample(range(40), changed)
    other = [word if place not in places else "elsewhere" for place, word in enumerate(report)]
    found = set()
    for key in (HashKey.from_secret(bytes([secret])) for secret in range(12)):
        signer = Signer(preset(label, key), key)
        one, two = sign(report, "a", signer), sign(other, "b", signer)
        found.add(relate(one, two, estimate(one, two)).relation)
    assert len(found) == 1


def test_short_texts_without_spaces_are_measured_in_bytes() -> None:
    text = "東京都は日本の首都である"
    assert verdict(text, f"{text}。そうだ").rule == "too_short"
    assert verdict(text * 9, f"{text * 9}そうだ").rule != "too_short"


def test_a_moved_threshold_changes_the_verdict() -> None:
    sample = SAMPLES["few_edits"]
    assert verdict(*sample, Thresholds(distance_ratio_max=0.0)).relation == "version"
    tight = Thresholds(order_free_min=0.25, containment_min=0.25)  # whose neighbours are valid too
    assert verdict(*sample, tight).relation == "near_duplicate"
    shared = SAMPLES["shared_passage"]
    assert verdict(*shared, Thresholds(order_free_min=0.5, version_min=0.5)).relation == "unrelated"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("wide_spread", 1.01, r"wide_spread in \[0, 1\] expected, not 1.01"),
        ("order_gap", -0.1, "order_gap"),
        ("symbols_min", 0, "symbols_min"),
        ("order_free_min", 0.26, "order_free_min <= version_min <= containment_min expected, not 0.26, 0.25, 0.7"),
        ("containment_min", 0.24, "order_free_min <= version_min"),
    ],
)
def test_thresholds_out_of_order_are_refused(name: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Thresholds(**{name: value})


def numbers_of(sample: str) -> tuple[Signature, Signature, Estimate]:
    newer, older = SAMPLES[sample]
    one, other = sign(newer, "b"), sign(older, "a")
    return one, other, estimate(one, other)


def test_clear_pairs_have_no_reason_for_doubt() -> None:
    assert verdict(*SAMPLES["equal_digest"]).low_confidence == ()
    assert verdict(*SAMPLES["covered"]).low_confidence == ()
    assert verdict([*LONG[:800], *words(6, 40), *LONG[800:]], LONG).low_confidence == ()


@pytest.mark.parametrize("sample", ["equal_digest", "few_edits", "covered", "reordered"])
@pytest.mark.parametrize("labels", [({}, {"attachments": "1f"}), ({"attachments": "2e"}, {"attachments": "1f"})])
def test_copies_with_other_attachments_say_so(sample: str, labels: tuple[dict[str, str], dict[str, str]]) -> None:
    newer, older, numbers = numbers_of(sample)
    newer, older = (replace_fields(text, labels=said) for text, said in zip((newer, older), labels, strict=True))
    is_copy = RELATIONS[sample] in ("exact_duplicate", "near_duplicate")
    assert ("attachments_differ" in relate(newer, older, numbers).low_confidence) is is_copy
    assert "attachments_differ" not in relate(newer, newer, numbers).low_confidence
    unread = replace_fields(newer, labels={"attachments": "unread"})
    assert "attachments_differ" not in relate(unread, older, numbers).low_confidence


@pytest.mark.parametrize("labels", [({}, {"surroundings": "1f"}), ({"surroundings": "2e"}, {"surroundings": "1f"})])
def test_equal_main_contents_of_pages_that_show_other_texts_are_near_duplicates(
    labels: tuple[dict[str, str], dict[str, str]],
) -> None:
    newer, older, numbers = numbers_of("equal_digest")
    newer, older = (replace_fields(text, labels=said) for text, said in zip((newer, older), labels, strict=True))
    found = relate(newer, older, numbers)
    assert (found.relation, found.rule) == ("near_duplicate", "equal_main_content")
    assert found.low_confidence == ("surroundings_differ",)
    assert relate(newer, newer, numbers).relation == "exact_duplicate"
    near, other, changed = numbers_of("few_edits")
    assert relate(replace_fields(near, labels=labels[1]), other, changed).low_confidence == ()


@pytest.mark.parametrize(
    ("reason", "fields", "changes"),
    [
        ("below_min_length", {"shingles": 39}, {}),
        ("few_symbols", {}, {"symbols_shorter": 29}),
        ("char_noise", {}, {"scattered": True}),
        ("long_text", {}, {"longer_characters": 100_001}),
        ("no_word_breaks", {"spaceless": True}, {}),
    ],
)
def test_each_weakness_is_named(reason: str, fields: dict[str, object], changes: dict[str, object]) -> None:
    one, other, numbers = numbers_of("covered")
    found = relate(replace_fields(one, **fields), other, numbers._replace(**changes))
    assert reason in found.low_confidence
    assert reason not in relate(one, other, numbers).low_confidence


def test_a_number_close_to_a_bound_is_near_threshold() -> None:
    one, other, numbers = numbers_of("covered")
    close = numbers._replace(shared_shorter=0.76)
    assert "near_threshold" in relate(one, other, close).low_confidence
    clear = numbers._replace(shared_shorter=0.78)
    assert "near_threshold" not in relate(one, other, clear).low_confidence


PAGE = Path(__file__).parents[4] / "docs/relations.md"


def test_the_confidence_of_events_is_the_measured_share_in_two_digits() -> None:
    section = PAGE.read_text("utf-8").partition("## When numbers are weak")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    measured = {name: (away, near) for name, *_, near, away in rows if name in CONFIDENCE}
    assert set(measured) == set(CONFIDENCE)
    for name, shares in measured.items():
        most = CONFIDENCE[name][0]  # no more is stated, since few events of a kind were drawn
        for stated, share in zip(CONFIDENCE[name], shares, strict=True):
            assert not share or abs(stated - min(float(share), most)) <= 0.0051


def placed(text: list[str], name: str, **where: object) -> Signature:
    signature = sign(text, name)
    domain = where.pop("domain", None)
    labels = {SENDER_DOMAIN_LABEL: str(domain)} if domain else {}
    return replace_fields(signature, labels=labels, lineage=where.get("page") and f"https://{where['page']}/{name}")


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [
        ({"page": "a.example"}, {"page": "a.example"}, "common_end"),
        ({"page": "a.example"}, {"page": "b.example"}, None),
        ({"domain": "a.example"}, {"domain": "a.example"}, "common_end"),
        ({"domain": "a.example"}, {"domain": "b.example"}, None),
        ({"page": "a.example"}, {"domain": "a.example"}, None),
    ],
)
def test_stories_above_the_offer_of_their_publisher_are_no_copies(
    one: dict[str, object], other: dict[str, object], rule: str | None
) -> None:
    offer = words(7, 105)
    newer, older = placed(words(8, 20) + offer, "b", **one), placed(words(9, 20) + offer, "a", **other)
    found = relate(newer, older, estimate(newer, older))
    assert found.rule == rule if rule else found.relation in ("near_duplicate", "version")
    above = [
        placed(words(7, 150) + words(seed, 30) + words(6, 50), str(seed), **where)
        for seed, where in ((8, one), (9, other))
    ]
    assert (relate(*above, estimate(*above)).rule == "own_passage") == ("page" in one and one == other)
    longer = placed(words(9, 20) + words(7, 400), "c", **one), placed(words(8, 20) + words(7, 400), "d", **other)
    assert relate(*longer, estimate(*longer)).relation in ("near_duplicate", "version")  # a text below two headings
