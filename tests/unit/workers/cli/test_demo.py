"""The relations of the example documents, which are known from their history, are found in the stream of them."""

import json
from collections import Counter
from typing import Any

from nearstream.schemas.verdicts.events import Containment, Retraction, kind_of
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.workers.cli.scan import EXAMPLES
from nearstream.workers.config.settings import load
from nearstream.workers.files.source import read
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import embedded

Relation = tuple[str, str]  # its name, and for a containment the id of the inner document
Related = dict[str, dict[str, Relation]]  # for each document, the others that events relate to it


async def _found() -> tuple[Related, dict[str, DocumentVerdict]]:
    """Return what events say of pairs, and the verdict of each document."""
    related: Related = {}
    verdicts: dict[str, DocumentVerdict] = {}
    async for outcome in embedded(Deployment.of(load({}))).outcomes(read([str(EXAMPLES / "documents.jsonl")])):
        assert outcome.verdict is not None
        verdicts[outcome.verdict.id] = outcome.verdict
        for event in outcome.events:
            assert not isinstance(event, Retraction)
            inner = getattr(event, event.inner).id if isinstance(event, Containment) else ""
            for one, other in ((event.newer.id, event.older.id), (event.older.id, event.newer.id)):
                related.setdefault(one, {})[other] = kind_of(event), inner
    return related, verdicts


def _relation(one: str, other: str, related: Related, verdicts: dict[str, DocumentVerdict]) -> Relation | None:
    """Return what an event says of two documents, else their family, else an event of one and a copy of the other."""
    if other in related.get(one, {}):
        return related[one][other]
    newer, older = verdicts[one], verdicts[other]
    if newer.family.id == older.family.id:
        if newer.version == older.version:
            return "exact_duplicate", ""
        return ("version" if newer.lineage and newer.lineage == older.lineage else "near_duplicate"), ""
    for each, of_family in ((one, other), (other, one)):
        for member, (relation, inner) in related.get(each, {}).items():
            if verdicts[member].family.id == verdicts[of_family].family.id:
                return relation, inner if inner in ("", each) else of_family
    return None


async def test_the_known_relations_of_the_examples_are_found_in_their_stream() -> None:
    found = await _found()
    known: list[dict[str, Any]] = [
        json.loads(line) for line in (EXAMPLES / "relations.jsonl").read_bytes().splitlines()
    ]
    wrong = Counter[str]()
    for row in known:
        expected = row["relation"], row.get(row.get("inner", ""), "")
        seen = _relation(row["newer"], row["older"], *found)
        if seen != (None if row["relation"] == "unrelated" else expected):
            wrong[row["relation"]] += 1
    assert len(known) == 169
    assert wrong == {"containment": 1}  # seen otherwise
