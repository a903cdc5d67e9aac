"""Copies keep only what distinguishes them from the founder of their family."""

from collections.abc import Sequence

from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.judging import Judge
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.store.messages import Keep, Shortened
from nearstream.streams.store.store import Store


async def shorten(store: Store, judge: Judge, cases: Sequence[Case], known: Known) -> None:
    """Store what copies have in common with the founders of their families once."""
    joined = [case for case in cases if case.joined is not None and not case.is_gone]
    decided = [(case, case.decision.founder) for case in joined if case.decision is not None]
    copies = [(case, founder) for case, founder in decided if founder != case.number]
    founders = {founder for _, founder in copies}
    gone = [founder for founder in sorted(founders) if not known.has_text(founder)]
    first = {founder: known.records[founder] for founder in founders if known.has_text(founder)}
    first |= await store.kept(gone) if gone else {}
    records: list[Shortened] = []
    keeps: list[Keep] = []
    for case, founder in copies:
        record = judge.shortened(case, first[founder]) if founder in first else b""
        if record:
            records.append(Shortened(case.number, record))
            keeps.append(Keep(founder, case.number))
    answers = await store.keep(keeps) if keeps else ()
    kept = [record for record, is_kept in zip(records, answers, strict=True) if is_kept]
    if kept:
        await store.shorten(kept)
