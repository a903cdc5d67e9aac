"""Compare two documents: how they relate, with all evidence, every rule, and what became of the pair."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from nearstream.schemas.documents.evidence import DocumentRef, Evidence, Interval, Place
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.verdicts.events import ChangeEvent, Containment, PairEvent
from nearstream.workers.cli.arguments import add_json, declare
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.content import UnreadableFileError
from nearstream.workers.operations.terminal import escaped, print_message, print_report, row
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.schemas.documents.evidence import Comparison
    from nearstream.streams.estimates.estimate import Proportion
    from nearstream.streams.relations.conditions import Condition
    from nearstream.streams.relations.novelty import Novelty
    from nearstream.workers.operations.explaining import Explained, Meeting, Outcome, Side

_SENT = {True: "sent", False: "not sent", None: "not known whether it was sent, as not both were matched"}


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream compare`."""
    declare(parser, show_comparison, example="nearstream compare old.txt new.txt", no="the documents are unrelated")
    kinds = "file with one document: a text, JSON (.json) or JSON Lines (.jsonl)"
    for name in ("a", "b"):
        parser.add_argument(name, metavar=name.upper(), help=kinds)
    add_json(parser, "one JSON object")


def show_comparison(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print how the documents of two files relate, with all evidence."""
    from nearstream.workers.operations.explaining import explain_files

    deployment = Deployment.of(settings)
    try:
        explained = explain_files(deployment, (options.a, options.b))
    except (InvalidMessageError, UnreadableFileError) as error:
        print_message(f"nearstream: {error}")
        return Exit.UNREADABLE
    print_pair(deployment, explained, is_json=options.json)
    related = explained.compared is not None and explained.compared.relation != "unrelated"
    return Exit.OK if related else Exit.NO


class SideReport(Struct, frozen=True):
    """One of two documents."""

    name: str
    status: str | None  # in the index. None: it was given as a file
    reason: str


class RuleReport(Struct, frozen=True):
    """A rule with its numbers. The first rule that holds decides."""

    rule: str
    relation: str
    holds: bool
    of_one_site: bool
    conditions: "tuple[tuple[Comparison, ...], ...]"


class PairReport(Struct, frozen=True):
    """Two documents, how they relate and meet, and what became of the pair."""

    later: SideReport
    earlier: SideReport
    scheme: str
    outcome: "Outcome"
    verdict: str | None  # about the later document, when it arrived in the index
    relation: str | None = None  # None, as all that follows: the documents cannot be compared
    newer: DocumentRef | None = None
    older: DocumentRef | None = None
    rule: str | None = None
    thresholds: dict[str, float] = {}
    same_lineage: bool = False
    low_confidence: tuple[str, ...] = ()
    meeting: "Meeting | None" = None
    evidence: Evidence | None = None
    newer_in_older: Interval | None = None
    older_in_newer: Interval | None = None
    distance_exact: int | None = None  # None: not both texts are at hand, or they are too long together
    novelty: "Novelty | None" = None
    removed_spans: tuple[Place, ...] = ()
    common_text: bool = False
    rules: tuple[RuleReport, ...] = ()
    event: PairEvent | None = None


def print_pair(deployment: Deployment, explained: "Explained", *, is_json: bool) -> None:
    """Print what is known of two documents."""
    report = pair_report(deployment, explained)
    print_report(report, pair_lines(report), is_json=is_json)


def pair_report(deployment: Deployment, explained: "Explained") -> PairReport:
    """Return what is known of two documents, as it is printed."""
    from nearstream.streams.relations.conditions import conditions
    from nearstream.streams.relations.describe import describe, document_ref, evidence
    from nearstream.workers.operations.explaining import outcome

    later, earlier, compared = explained.later, explained.earlier, explained.compared
    sides, told = (_side(later), _side(earlier)), outcome(deployment, explained)
    if compared is None:
        return PairReport(*sides, deployment.scheme.name, told, _verdict(later))
    pair, estimate = compared.pair, compared.estimate
    shares = pair.newer_first(estimate.containment_shorter, estimate.containment_longer)
    rules = conditions(estimate, deployment.thresholds)
    return PairReport(
        *sides,
        deployment.scheme.name,
        told,
        _verdict(later),
        relation=compared.relation,
        newer=document_ref(pair.newer),
        older=document_ref(pair.older),
        rule=compared.rule.name,
        thresholds=pair.verdict.thresholds,
        same_lineage=compared.same_lineage,
        low_confidence=pair.verdict.low_confidence,
        meeting=explained.meeting,
        evidence=evidence(pair),
        newer_in_older=_rounded(shares[0]),
        older_in_newer=_rounded(shares[1]),
        distance_exact=explained.distance_exact,
        novelty=explained.novelty,
        removed_spans=explained.removed_spans,
        common_text=compared.is_common_text,
        rules=tuple(map(_rule, rules)),
        event=None if compared.relation == "unrelated" else describe(pair),
    )


def _side(side: "Side") -> SideReport:
    return SideReport(side.name, *((side.inspected.status, side.inspected.reason) if side.inspected else (None, "")))


def _verdict(side: "Side") -> str | None:
    """Return the verdict on a document of the index, None for a file and before the decision."""
    if side.state is None or not side.state.decided:
        return None
    return side.state.pairs[0].relation if side.state.pairs else "unique"


def _rule(condition: "Condition") -> RuleReport:
    rule = condition.rule
    return RuleReport(rule.name, rule.relation, condition.holds, condition.of_one_site, condition.clauses)


def _rounded(share: "Proportion") -> Interval:
    return Interval(round(share.value, 4), round(share.low, 4), round(share.high, 4))


def pair_lines(report: PairReport) -> Iterator[str]:
    """Yield what is known of two documents as lines: the relation first, then all that it follows from."""
    if report.relation is not None and report.rule is not None:
        thresholds = ", ".join(f"{name} {value:g}" for name, value in report.thresholds.items())
        yield row("relation", report.relation + (", same lineage" if report.same_lineage else ""))
        yield row("rule", report.rule + (f" ({thresholds})" if thresholds else ""))
    for reason in report.low_confidence:
        yield row("weak", reason)
    yield row("outcome", f"{report.outcome.tier}: {report.outcome.reason}")
    if report.outcome.event_id:
        yield row("event", f"{report.outcome.event_id}, {_SENT[report.outcome.is_sent]}")
    if report.verdict:
        yield row("verdict", f"{report.verdict}, when {escaped(report.later.name)} arrived")
    yield _side_line("later", report.later)
    yield _side_line("earlier", report.earlier)
    yield row("scheme", report.scheme)
    if report.evidence is None or report.newer is None or report.older is None:
        return
    yield row("newer", escaped(report.newer.id))
    yield row("older", escaped(report.older.id))
    yield from _key_lines(report.evidence, report.meeting)
    yield from _change_lines(report)
    yield from _number_lines(report, report.evidence)
    for rule in report.rules:
        yield from _rule_lines(rule, decides=rule.rule == report.rule)


def _side_line(name: str, side: SideReport) -> str:
    status = "a file, not in the index" if side.status is None else side.status
    return row(name, f"{escaped(side.name)}: {status}" + (f", {side.reason}" if side.reason else ""))


def _key_lines(evidence: Evidence, meeting: "Meeting | None") -> Iterator[str]:
    keys = evidence.keys
    if meeting is None:
        yield row("keys", "not known: the signatures topic no longer holds a whole signature of both")
        return
    equal = [name for name, holds in (("digest", meeting.digest), ("lineage", meeting.lineage)) if holds]
    yield row("keys shared", ", ".join([*equal, f"{keys.bands} of {keys.bands_of} bands", f"{keys.anchors} anchors"]))
    yield row("", f"anchors: the newer has {keys.anchors_newer}, the older {keys.anchors_older}")
    value, low, high = meeting.chance
    yield row("chance", f"{value:.3f} ({low:.3f}-{high:.3f}) to share a band at this resemblance")
    if meeting.looked_up is not None:
        found = "among" if meeting.is_candidate else "not among"
        yield row("candidates", f"{found} the {meeting.looked_up} that the index names for the later one now")


def _change_lines(report: PairReport) -> Iterator[str]:
    event, new = report.event, report.novelty
    if report.common_text:
        yield row("common text", "many documents have what both share")
    if isinstance(event, Containment):
        inner, outer = ("newer", "older") if event.inner == "newer" else ("older", "newer")
        yield row("inside", f"the {inner} lies in the {outer} at {_span(event.place)}")
    if isinstance(event, ChangeEvent):
        yield row("changed", f"+{event.added} -{event.removed} characters")
        more = f", {event.new_spans_omitted} more" if event.new_spans_omitted else ""
        yield row("new in newer", (", ".join(map(_span, event.new_spans)) or "nothing") + more)
    if new is not None and new.added is not None:
        known = ", redundant: both texts are equal" if new.redundant else ""
        yield row("new in later", f"{new.added.value} characters ({new.added.low}-{new.added.high}){known}")
        if new.novel_spans:
            yield row("", f"the longest first: {', '.join(map(_span, new.novel_spans))}")
    if report.removed_spans:
        yield row("gone of earlier", f"within {', '.join(map(_span, report.removed_spans))}")


def _number_lines(report: PairReport, evidence: Evidence) -> Iterator[str]:
    overlap, distance, exact = evidence.overlap, evidence.distance, report.distance_exact
    yield row("resemblance", _interval(evidence.resemblance))
    for name, share in (("newer in older", report.newer_in_older), ("older in newer", report.older_in_newer)):
        if share is not None:
            yield row(name, _interval(share))
    yield row("in order", f"{overlap.in_order:.2f} of the shorter, {overlap.order_free:.2f} in any order")
    symbols = f"{overlap.symbols} of {overlap.symbols_newer} and {overlap.symbols_older} symbols"
    yield row("common", f"{symbols}, one in {overlap.rate} bytes")
    band = f"({distance.low}-{distance.high})"
    yield row("distance", f"{distance.value} characters {band}, {evidence.distance_ratio:.2f} of the longer")
    yield row("  exact", "not computed: not both texts are here, or they are long" if exact is None else f"{exact}")


def _rule_lines(rule: RuleReport, *, decides: bool) -> Iterator[str]:
    from nearstream.workers.operations.explaining import comparison_text

    mark = "decides" if decides else "holds" if rule.holds else "no"
    yield row("rule", f"{rule.rule} ({rule.relation}): {mark}")
    for clause in rule.conditions:
        for at, each in enumerate(clause):
            join = "or " if at else "  "
            yield row("", f"{join}{comparison_text(each)}: {'yes' if each.holds else 'no'}")
    if rule.of_one_site:
        yield row("", "  two pages of one site: never")


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]}-{span[1]}"


def _interval(interval: Interval) -> str:
    return f"{interval.value:.2f} ({interval.low:.2f}-{interval.high:.2f})"
