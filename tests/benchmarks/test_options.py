"""What the comparison of index keys counts."""

from benchmarks.quality.corpus import Details, Pair, Text, document
from benchmarks.quality.options import compare_bits, compare_keys, megashingles
from benchmarks.quality.retrieval import BEGIN
from benchmarks.stream.prose import Prose, sources
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer

PROSE = Prose(sources(None), 1)
WORDS = PROSE.words(400)
SAME = Details(1.0, 1.0, 1.0, 0, 2_000, 2_000, 400, 400)
APART = Details(0.0, 0.0, 0.0, 1_500, 2_000, 2_000, 400, 400)


def signed(texts: dict[str, Text]) -> dict[str, Signature]:
    key = HashKey.public()
    signer = Signer(preset(DEFAULT_LABEL, key), key)
    return {name: signer.sign(document(text, BEGIN)) for name, text in texts.items()}


def test_each_way_finds_what_it_is_made_for() -> None:
    copies = {"a": " ".join(WORDS), "b": " ".join(WORDS).upper(), "c": " ".join(PROSE.words(400))}
    texts = {name: Text(name, text) for name, text in copies.items()}
    pairs = [
        Pair("a", "b", "exact_duplicate", clear=True, details=SAME),
        Pair("a", "c", "unrelated", clear=True, details=APART),
    ]
    rows = {row["way"]: row for row in compare_keys(pairs, texts, signed(texts))}
    for name, row in rows.items():
        assert row["found"]["related"] == row["found"]["exact_duplicate"] == (0 if name == "raw digest" else 1), name
        assert row["found_beside_the_default"]["related"] == 1
        assert row["found"]["unrelated"] == 0
    assert rows["raw digest"]["others_per_document"] == 0
    assert rows["bands 15 x 8"]["others_per_document"] == 0.33
    assert rows["text profile"]["duplicates_among_labelled_that_meet"] == 1
    assert [rows[name]["keys"] for name in ("raw digest", "bands 9 x 14", "megashingles, 2 of 6 runs of 14")] == [
        1,
        9,
        15,
    ]


def test_megashingle_keys_meet_iff_two_runs_agree() -> None:
    (one,) = signed({"a": Text("a", " ".join(WORDS))}).values()
    way, run = megashingles(2, 14), 14 * 4
    keys = set(way(Text("a", ""), one))
    for agreeing in range(7):
        changed = b"".join(one.sketch[at * run : (at + 1) * run] if at < agreeing else bytes(run) for at in range(6))
        other = Signature(
            *(changed if name == "sketch" else getattr(one, name) for name in Signature.__struct_fields__)
        )
        common = keys & set(way(Text("b", ""), other))
        assert len(common) == agreeing * (agreeing - 1) // 2


def test_more_bits_never_make_equal_sketches_differ() -> None:
    texts = {name: Text(name, " ".join(WORDS)) for name in ("a", "b")}
    pairs = [Pair("a", "b", "exact_duplicate", clear=True, details=SAME)]
    for row in compare_bits(pairs, signed(texts)):
        assert (row["mean_error"], row["on_the_wrong_side"]) == (0, 0)
