"""Verdicts as a person reads them."""

from datetime import timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.verdicts.verdict import VERDICT_KINDS, DocumentVerdict, FamilyRef
from nearstream.workers.cli.events import COLUMNS, line, verdict_line
from nearstream.workers.operations.terminal import columns
from tests.support.forged import FORGED, dangerous

PATH = Path(__file__).parents[4] / "schemas" / "examples" / "verdict.json"


def example(kind: str = "near_duplicate", **changed: object) -> DocumentVerdict:
    """Return the example with another kind: `c-7730`, the third of the family of `a-1041`."""
    verdict = decode_event(PATH.read_bytes())
    assert isinstance(verdict, DocumentVerdict)
    return replace(verdict, verdict=kind, **changed)


def counterpart(**changed: object) -> DocumentRef:
    """Return the document that the example is compared with."""
    verdict = example()
    assert verdict.of is not None
    return replace(verdict.of, **changed)


def founder(document_id: str) -> FamilyRef:
    """Return the family of the example with another founder."""
    return replace(example().family, founder=counterpart(id=document_id))


def alone() -> FamilyRef:
    """Return a family of which the example is the founder."""
    return replace(example().family, ordinal=1)


def test_a_copy_is_told_with_its_numbers_and_its_place_in_the_family() -> None:
    assert verdict_line(example()) == (
        "near_duplicate   c-7730 ~ a-1041  [+36 new, resemblance 0.95 (0.89-0.98), no. 3 of its family, distance 92]"
    )


def test_an_exact_copy_needs_no_numbers() -> None:
    assert verdict_line(example("exact_duplicate")) == "exact_duplicate  c-7730 equals a-1041  [no. 3 of its family]"
    degraded = example("exact_duplicate", family=alone(), degraded=("bucket_overflow",))
    assert "degraded: bucket_overflow]" in verdict_line(degraded)


def test_a_founder_that_is_not_the_counterpart_is_named() -> None:
    assert verdict_line(example("exact_duplicate", family=founder("z-1"))) == (
        "exact_duplicate  c-7730 equals a-1041  [no. 3 of its family, founded by z-1]"
    )
    gone = replace(example().family, founder=None)
    assert verdict_line(example("exact_duplicate", family=gone)).endswith("a-1041  [no. 3 of its family]")


def test_what_brings_nothing_new_is_told_without_a_counterpart() -> None:
    for kind in ("unique", "unchanged"):
        own = replace(alone(), founder=counterpart(id="c-7730"))
        verdict = example(kind, family=own, resemblance=UNSET, distance=UNSET)
        assert verdict_line(verdict) == f"{kind:<16} c-7730"


def test_a_containment_says_which_one_holds_the_other_whichever_is_newer() -> None:
    for inner, days, verb in (
        ("newer", -1, "lies in"),
        ("older", -1, "holds"),
        ("newer", 1, "holds"),
        ("older", 1, "lies in"),
    ):
        other = counterpart(observed_at=example().observed_at + timedelta(days=days))
        text = verdict_line(example("containment", inner=inner, of=other, family=alone()))
        assert text.startswith(f"containment      c-7730 {verb} a-1041  [+36 new, resemblance 0.95")


def test_a_version_says_which_one_came_first() -> None:
    for days, verb in ((-1, "updates"), (1, "precedes")):
        other = counterpart(observed_at=example().observed_at + timedelta(days=days))
        assert verdict_line(example("version", of=other)).startswith(f"version          c-7730 {verb} a-1041  [")


def test_a_counterpart_that_was_removed_has_no_name() -> None:
    for kind in ("near_duplicate", "containment", "version"):
        gone = example(kind, of=None, resemblance=UNSET, distance=UNSET, family=alone())
        assert verdict_line(gone).startswith(f"{kind:<16} c-7730 ~ a document that is gone")


def test_s16_a_verdict_cannot_forge_a_line() -> None:
    for kind in VERDICT_KINDS:
        for document_id in FORGED:
            family = founder(document_id)
            verdict = example(
                kind, id=document_id, of=counterpart(id=document_id), family=family, degraded=(document_id,)
            )
            for text in (verdict_line(verdict), line(verdict)):
                assert not dangerous(text)
                assert text.splitlines() == [text]


@given(
    kind=st.sampled_from(VERDICT_KINDS),
    names=st.tuples(*[st.text(st.characters(exclude_categories=[]), min_size=1, max_size=300)] * 3),
)
def test_a_verdict_fits_120_columns_whatever_the_ids(kind: str, names: tuple[str, str, str]) -> None:
    verdict = example(kind, id=names[0], of=counterpart(id=names[1]), family=founder(names[2]))
    for text in (verdict_line(verdict), line(verdict)):
        assert columns(text) <= COLUMNS
        assert not dangerous(text)
