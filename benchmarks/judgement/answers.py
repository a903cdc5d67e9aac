"""Match the documents of a case and judge what was said of them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.judgement.cases import Case, Expected, Material, Stream, Told
from benchmarks.quality.corpus import document
from benchmarks.quality.retrieval import BEGIN
from benchmarks.quality.scoring import Figures
from benchmarks.storing import new_store
from nearstream.schemas.verdicts.events import PairEvent, Retraction, kind_of
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits


@dataclass(frozen=True)
class Answers:
    """All that was said of the documents of a stream."""

    verdicts: dict[str, DocumentVerdict]  # the verdict of the last state of each document, by its id
    # The events about each pair of ids. Those of one document are under its id alone.
    events: dict[frozenset[str], PairEvent]
    milliseconds: float  # processor time of a document

    def told(self, pair: Expected) -> Told:
        """Return what was said of a pair."""
        event = self.events.get(frozenset((pair.older.id, pair.newer.id)))
        if event is not None:
            return Told(pair, kind_of(event), event)
        older, newer = self.verdicts[pair.older.id], self.verdicts[pair.newer.id]
        return Told(pair, newer.verdict if older.family.id == newer.family.id else "", None)


async def answers(stream: Stream, scheme_name: str) -> Answers:
    """Match the documents of a stream, with the settings that a worker has by default."""
    key = HashKey.public()
    scheme = preset(scheme_name, key)
    signer, matcher = Signer(scheme, key), Matcher(new_store(scheme, IndexLimits(retention_seconds=0)), scheme, key)
    verdicts: dict[str, DocumentVerdict] = {}
    events: dict[frozenset[str], PairEvent] = {}
    began = time.process_time()
    for second, text in enumerate(stream.texts):
        matched = await matcher.match(signer.sign(document(text, BEGIN + timedelta(seconds=second))))
        for event in matched.events:
            if not isinstance(event, Retraction):
                events[frozenset((event.newer.id, event.older.id))] = event
        if matched.verdict is not None:
            verdicts[text.id] = matched.verdict
    return Answers(verdicts, events, 1000 * (time.process_time() - began) / len(stream.texts))


async def rows(case: Case, material: Material, scheme_name: str) -> list[Figures]:
    """Return one row of figures for each check of a case."""
    stream = case.make(material)
    said = await answers(stream, scheme_name)
    told = [said.told(pair) for pair in stream.expected]
    wanted = {frozenset((pair.older.id, pair.newer.id)) for pair in stream.expected}
    false = sum(both not in wanted for both in said.events)
    spoken = sum(both in said.events for both in stream.apart)
    apart = (spoken / len(stream.apart) if stream.apart else 0.0), len(stream.apart)
    return [
        {
            "case": case.number,
            "documents": len(stream.texts),
            "name": case.name,
            "person": case.person,
            "check": check.name,
            "goal": check.goal,
            **_judged(check.share(told, apart)),
            "most_false": case.most_false,
            "false_events_per_document": round(false / len(stream.texts), 3),
            "ms_per_document": round(said.milliseconds, 2),
        }
        for check in case.checks
    ]


def missed(row: Figures) -> bool:
    """Return whether a row is below its goal, or has more false events than its case may have."""
    most = row["most_false"]
    return row["share"] < row["goal"] or (most is not None and row["false_events_per_document"] > most)


def table(rows: Sequence[Figures]) -> str:
    """Return the rows as a table in Markdown."""
    head = ("case", "documents", "a person says", "checked", "goal", "now", "of", "other events a document", "")
    lines = [head, ("---",) * len(head)]
    for row in rows:
        goal = f"{row['goal']:.2f}" + ("" if row["most_false"] is None else f", {row['most_false']} events")
        now = f"{row['share']:.3f}", str(row["judged"]), f"{row['false_events_per_document']:.3f}"
        names = str(row["case"]), row["name"], row["person"], row["check"]
        lines.append((*names, goal, *now, "missed" if missed(row) else ""))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _judged(figure: tuple[float, int]) -> Figures:
    return {"share": round(figure[0], 4), "judged": figure[1]}
