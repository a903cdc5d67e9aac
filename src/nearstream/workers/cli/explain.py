"""Explain why two documents are related, or why not."""

import argparse
import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.relations.conditions import Condition, conditions
from nearstream.workers.cli.arguments import add_collection, add_json, add_quiet, add_timeout, declare
from nearstream.workers.cli.compare import change_lines, number_lines
from nearstream.workers.cli.families import family_object
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.content import UnreadableFileError
from nearstream.workers.operations.terminal import escaped, print_json, print_line, print_message, utc_time
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.streams.matching.counterpart import Compared
    from nearstream.streams.relations.novelty import Novelty
    from nearstream.workers.operations.explaining import Explained, Meeting, Side
    from nearstream.workers.operations.lost_pair import Loss


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream explain`."""
    declare(parser, explain_pair, example="nearstream explain old.txt new.txt", no="an id is unknown")
    _add_pair(parser)


def explain_pair(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print everything about two documents: their keys, numbers, rules, family and event."""
    deployment = Deployment.of(settings)
    explained = _explained(deployment, options)
    if explained is None:
        return Exit.UNREADABLE
    if options.json:
        print_json(explanation_object(deployment, explained))
    else:
        for line in explanation_lines(deployment, explained, time.time_ns() // 1_000_000):
            print_line(line)
    return Exit.NO if _is_unknown(explained) else Exit.OK


def add_why_not(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream why-not`."""
    example = "nearstream why-not https://a.example/1 https://a.example/2"
    declare(parser, explain_loss, example=example, no="an id is unknown")
    _add_pair(parser)


def explain_loss(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the first tier that lost a pair, or the event that it has."""
    from nearstream.workers.operations.lost_pair import Tier, first_loss

    deployment = Deployment.of(settings)
    explained = _explained(deployment, options)
    if explained is None:
        return Exit.UNREADABLE
    loss = first_loss(deployment, explained)
    if options.json:
        print_json(loss_object(explained, loss))
    else:
        print_line(f"{loss.tier}: {loss.reason}")
        if loss.event_id and loss.tier is Tier.RELATED:
            print_line(event_line(loss))
    return Exit.NO if _is_unknown(explained) else Exit.OK


def _add_pair(parser: argparse.ArgumentParser) -> None:
    """Add two documents, and how they are read."""
    for name in ("a", "b"):
        parser.add_argument(
            name,
            metavar=name.upper(),
            help="file with one document, file with a signature (.msgpack), or id of a document in the index (id:X "
            "is always an id)",
        )
    add_collection(parser, "ids")
    add_json(parser, "one JSON object")
    add_quiet(parser)
    add_timeout(parser, 10.0)


def _explained(deployment: Deployment, options: argparse.Namespace) -> "Explained | None":
    """Return what is known about both documents. None: a file cannot be read, and the reason was printed."""
    from nearstream.workers.operations.explaining import explain

    asked = explain(deployment, (options.a, options.b), options.collection, options.timeout, quiet=options.quiet)
    try:
        return asyncio.run(asked)
    except (InvalidMessageError, UnreadableFileError) as error:
        print_message(f"nearstream: {error}")
        return None


def _is_unknown(explained: "Explained") -> bool:
    from nearstream.workers.operations.inspection import DocumentStatus

    sides = (explained.later, explained.earlier)
    return any(side.inspected is not None and side.inspected.status is DocumentStatus.UNKNOWN for side in sides)


_SENT = {True: "sent", False: "not sent", None: "not known whether it was sent, as not both were matched"}


def explanation_lines(deployment: Deployment, explained: "Explained", now_ms: int) -> Iterator[str]:
    """Yield both documents, their keys, every number, each rule, and what became of the pair."""
    from nearstream.streams.relations.describe import evidence
    from nearstream.workers.operations.lost_pair import first_loss

    for name, side in (("later", explained.later), ("earlier", explained.earlier)):
        yield from _side_lines(name, side, now_ms)
    yield _row("scheme", deployment.scheme.name)
    compared, loss = explained.compared, first_loss(deployment, explained)
    if compared is not None:
        yield from _key_lines(compared, explained.meeting)
        yield from change_lines(compared.pair)
        yield from _novelty_lines(_novelty(deployment, explained.later, compared))
        yield from number_lines(compared.pair, evidence(compared.pair))
        for condition in conditions(compared.estimate, deployment.thresholds):
            yield from _condition_lines(condition, decides=condition.rule.name == compared.rule.name)
        yield _row("relation", compared.relation + (", same lineage" if compared.same_lineage else ""))
        for reason in compared.pair.verdict.low_confidence:
            yield _row("weak", reason)
    verdict = verdict_of(explained.later)
    if verdict:
        yield _row("verdict", f"{verdict}, when {escaped(explained.later.name)} arrived")
    yield _row("outcome", f"{loss.tier}: {loss.reason}")
    if loss.event_id:
        yield event_line(loss)


def explanation_object(deployment: Deployment, explained: "Explained") -> dict[str, Any]:
    """Return the explanation for JSON."""
    from nearstream.streams.relations.describe import evidence
    from nearstream.workers.operations.lost_pair import event_id_of, first_loss, stored_pair

    compared, meeting = explained.compared, explained.meeting
    stored = stored_pair(explained)
    told: dict[str, Any] = {
        "later": _side_object(explained.later),
        "earlier": _side_object(explained.earlier),
        "scheme": deployment.scheme.name,
        "verdict": verdict_of(explained.later) or None,
        "stored": stored and {name: getattr(stored, name) for name in ("number", "relation", "is_sent")},
        "outcome": loss_object(explained, first_loss(deployment, explained)),
        "meeting": meeting and asdict(meeting),
    }
    if compared is None:
        return told
    rules = conditions(compared.estimate, deployment.thresholds)
    return told | {
        "relation": compared.relation,
        "rule": compared.rule.name,
        "evidence": evidence(compared.pair),
        "novelty": _novelty(deployment, explained.later, compared),
        "rules": [_condition_object(rule) for rule in rules],
        "low_confidence": compared.pair.verdict.low_confidence,
        "common_text": compared.is_common_text,
        "event_id": event_id_of(compared) or None,
    }


def loss_object(explained: "Explained", loss: "Loss") -> dict[str, Any]:
    """Return the tier that lost a pair for JSON."""
    return {
        "later": explained.later.name,
        "earlier": explained.earlier.name,
        "tier": loss.tier,
        "reason": loss.reason,
        "event_id": loss.event_id or None,
        "sent": loss.is_sent,
    }


def event_line(loss: "Loss") -> str:
    """Return the id of the event of a pair, with whether it was sent."""
    return _row("event", f"{loss.event_id}, {_SENT[loss.is_sent]}")


def verdict_of(side: "Side") -> str:
    """Return the verdict on a document of the index, empty for a file and before the decision."""
    if side.state is None or not side.state.decided:
        return ""
    return side.state.pairs[0].relation if side.state.pairs else "unique"


def _row(name: str, text: str) -> str:
    return f"{name:<15}  {text}"


def _side_lines(name: str, side: "Side", now_ms: int) -> Iterator[str]:
    status = "a file, not in the index" if side.inspected is None else str(side.inspected.status)
    reason = f", {side.inspected.reason}" if side.inspected and side.inspected.reason else ""
    yield _row(name, f"{escaped(side.name)}: {status}{reason}")
    signature = side.signature
    if signature is None:
        return
    hours = max(now_ms - signature.observed_at_ms, 0) / 3_600_000
    age = f"{hours / 24:.0f} d" if hours >= 48 else f"{hours:.1f} h"
    yield _row("", f"observed {utc_time(signature.observed_at_ms)}, {age} ago; version {signature.version}")
    yield _row("", f"{signature.characters} characters, {signature.words} words, {signature.shingles} shingles")
    state = side.state
    if state is None or side.inspected is None:
        return
    member = state.family
    family = "alone in its family"
    if member is not None and member.facts is not None:
        place = f"no. {member.ordinal}" if member.ordinal else "not joined yet"
        family = f"family {member.facts.family_id}, {place} of {member.facts.size} live"
    yield _row("", f"number {state.number}, {len(side.inspected.states)} states; {family}")


def _key_lines(compared: "Compared", meeting: "Meeting | None") -> Iterator[str]:
    keys = compared.pair.keys
    if meeting is None:
        yield _row("keys", "not known: the signatures topic no longer holds a whole signature of both")
        return
    equal = [name for name, holds in (("digest", meeting.digest), ("lineage", meeting.lineage)) if holds]
    bands = f"{keys.bands} of {keys.bands_of} bands"
    yield _row("keys shared", ", ".join([*equal, bands, f"{keys.anchors} anchors"]))
    yield _row("", f"anchors: the newer has {keys.anchors_newer}, the older {keys.anchors_older}")
    value, low, high = meeting.chance
    yield _row("chance", f"{value:.3f} ({low:.3f}-{high:.3f}) to share a band at this resemblance")
    if meeting.buckets:
        held, hot = sum(each.holds for each in meeting.buckets), sum(each.is_hot for each in meeting.buckets)
        yield _row("buckets", f"the earlier is in {held} of {len(meeting.buckets)} shared buckets, {hot} are full")
    if meeting.looked_up is not None:
        found = "among" if meeting.is_candidate else "not among"
        yield _row("candidates", f"{found} the {meeting.looked_up} that the index names for the later one now")
    if compared.is_common_text:
        yield _row("common text", "many documents have what both share")


def _novelty(deployment: Deployment, later: "Side", compared: "Compared") -> "Novelty | None":
    """Return what is new in the later document, with places in its text if that is known."""
    from nearstream.streams.matching.counterpart import novelty_of
    from nearstream.streams.relations.sent_novelty import novelty_in_text

    found = novelty_of(compared.newcomer.signature, [compared])
    return novelty_in_text(found, later.text, deployment.scheme.text) if found and later.text else found


def _novelty_lines(found: "Novelty | None") -> Iterator[str]:
    """Yield how much text is new in the later document, with its places."""
    if found is None or found.added is None:
        return
    amount = found.added
    known = ", redundant: both texts are equal" if found.redundant else ""
    yield _row("new in later", f"{amount.value} characters ({amount.low}-{amount.high}){known}")
    if found.novel_spans:
        places = ", ".join(f"{start}-{end}" for start, end in found.novel_spans)
        yield _row("", f"the longest first: {places}")


def _condition_lines(condition: Condition, *, decides: bool) -> Iterator[str]:
    from nearstream.workers.operations.lost_pair import comparison_text

    mark = "decides" if decides else "holds" if condition.holds else "no"
    yield _row("rule", f"{condition.rule.name} ({condition.rule.relation}): {mark}")
    for clause in condition.clauses:
        for at, each in enumerate(clause):
            join = "or " if at else "  "
            yield _row("", f"{join}{comparison_text(each)}: {'yes' if each.holds else 'no'}")
    if condition.of_one_site:
        yield _row("", "  two pages of one site: never")


def _condition_object(condition: Condition) -> dict[str, Any]:
    return {
        "rule": condition.rule.name,
        "relation": condition.rule.relation,
        "holds": condition.holds,
        "of_one_site": condition.of_one_site,
        "conditions": [[asdict(each) for each in clause] for clause in condition.clauses],
    }


def _side_object(side: "Side") -> dict[str, Any]:
    signature, state = side.signature, side.state
    member = state.family if state else None
    return {
        "name": side.name,
        "status": side.inspected.status if side.inspected else None,
        "reason": side.inspected.reason if side.inspected else "",
        "version": signature.version if signature else None,
        "observed_at_ms": signature.observed_at_ms if signature else None,
        "characters": signature.characters if signature else None,
        "words": signature.words if signature else None,
        "number": state.number if state else None,
        "states": len(side.inspected.states) if side.inspected else 0,
        "family": family_object(member.facts) if member and member.facts else None,
        "ordinal": member.ordinal if member else None,
    }
