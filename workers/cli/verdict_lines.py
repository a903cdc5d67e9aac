"""Show verdicts as lines for a person."""

from collections.abc import Iterator

from msgspec import UnsetType

from nearstream.schemas.evidence import DocumentRef, ReferenceMatch
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.workers.cli.fitting import COLUMNS, KIND_COLUMNS, cut, sentence, with_details
from nearstream.workers.operations.terminal import columns, escaped

NOTHING_NEW = ("unique", "unchanged")
_GONE = "a document that is gone"


def verdict_line(verdict: DocumentVerdict, start: str = "") -> str:
    """Format a verdict as one line: kind, documents, then the details that fit.

    Args:
        verdict: The verdict.
        start: What the line starts with. Default: the kind, in a column.
    """
    start = start or f"{verdict.verdict:<{KIND_COLUMNS}} "
    if verdict.verdict in NOTHING_NEW:
        text = start + cut(verdict.id, COLUMNS - columns(start))
    else:
        text = sentence(start, verdict.id, _verb(verdict), verdict.of.id if verdict.of else _GONE)
    return with_details(text, list(_details(verdict)))


def reference_line(found: ReferenceMatch) -> str:
    """Format a reference as a line to follow that of the verdict."""
    start = f"{'':<{KIND_COLUMNS}} {found.relation} of {found.collection}/"
    detail = f", resemblance {found.resemblance.value:.2f}"
    return with_details(start + cut(found.id, COLUMNS - columns(start) - columns(detail) - 2), [detail])


def _verb(verdict: DocumentVerdict) -> str:
    """Return what the document is to its counterpart."""
    if verdict.verdict == "exact_duplicate":
        return "equals"
    if verdict.of is None:
        return "~"
    is_newer = _order(verdict) > _order(verdict.of)
    if verdict.verdict == "version":
        return "updates" if is_newer else "precedes"
    if verdict.verdict == "containment" and not isinstance(verdict.inner, UnsetType):
        return "lies in" if (verdict.inner == "newer") == is_newer else "holds"
    return "~"


def _order(document: DocumentRef) -> tuple[object, ...]:
    return document.observed_at, document.id, document.version


def _details(verdict: DocumentVerdict) -> Iterator[str]:
    is_equal = verdict.verdict == "exact_duplicate"
    if not isinstance(verdict.novel, UnsetType) and not is_equal and verdict.verdict not in NOTHING_NEW:
        yield f", +{verdict.novel.value} new"
    if not isinstance(verdict.resemblance, UnsetType) and not is_equal:
        yield f", resemblance {verdict.resemblance.value:.2f}"
        yield f" ({verdict.resemblance.low:.2f}-{verdict.resemblance.high:.2f})"
    if verdict.family.ordinal > 1:
        yield f", no. {verdict.family.ordinal} of its family"
    if verdict.family.sites > 1:
        yield f" on {verdict.family.sites} sites"
    if not isinstance(verdict.distance, UnsetType) and not is_equal:
        yield f", distance {verdict.distance.value}"
    founder = verdict.family.founder
    if founder is not None and founder.id not in (verdict.id, verdict.of.id if verdict.of else ""):
        yield f", founded by {escaped(founder.id)}"
    for reason in verdict.degraded:
        yield f", degraded: {escaped(reason)}"
