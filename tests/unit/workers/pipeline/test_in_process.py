"""Documents that are matched in this process."""

import json

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.workers.config.settings import load
from nearstream.workers.files.source import Item
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import embedded
from tests.support.made_up import words

SOUP, BREAD, SALT = (" ".join(words(seed, 60)) for seed in (1, 2, 3))


def item(offset: int, name: str, fields: dict[str, str] | None) -> Item:
    value = None if fields is None else json.dumps({"id": name, **fields}).encode()
    return Item(f"line {offset}", ConsumerRecord("documents", 0, offset, 1_772_000_000_000, name.encode(), value, []))


async def test_pages_with_equal_main_contents_are_equal_only_if_all_that_is_seen_is() -> None:
    """What is told of a page is the main content, and the rest may be as long."""
    pages = [
        ("a", "Home News"),
        ("b", "Home News"),
        ("c", f"<p>{BREAD}</p>"),
        ("a", f"<p>{SALT}</p>"),
        ("a", "Home News"),
    ]
    article = "".join(f"<p>{' '.join(words(seed, 60))}</p>" for seed in range(5))
    html = f"<body><article>{article}</article><nav>{{}}</nav></body>"
    items = [item(offset, name, {"html": html.format(rest)}) for offset, (name, rest) in enumerate(pages)]
    found = [outcome.verdict async for outcome in embedded(Deployment.of(load({}))).outcomes(items)]
    told = [(each.verdict, each.redundant, each.low_confidence, each.family.ordinal) for each in found if each]
    differs = ("surroundings_differ",)
    assert told == [
        ("unique", False, (), 1),
        ("exact_duplicate", True, (), 2),
        ("near_duplicate", False, differs, 3),
        ("unchanged", False, differs, 1),
        ("unchanged", False, (), 1),
    ]


async def test_families_with_a_second_member_are_listed_once() -> None:
    for records, families in (
        ([("a", SOUP), ("b", SOUP), ("a", SOUP), ("c", BREAD), ("d", SOUP)], [("default/a", 3)]),
        ([("a", SOUP), ("b", SOUP), ("c", BREAD), ("d", BREAD), ("d", SALT)], [("default/a", 2), ("default/c", 1)]),
        ([("a", SOUP), ("b", SOUP), ("c", SOUP), ("a", None)], [("", 2)]),
    ):
        job = embedded(Deployment.of(load({})))
        items = [item(offset, name, {"text": text} if text else None) for offset, (name, text) in enumerate(records)]
        outcomes = [outcome async for outcome in job.outcomes(items)]
        assert [outcome.refusal for outcome in outcomes] == [""] * len(items)
        assert sorted([(each.founder, each.size) async for each in job.families()]) == families


async def test_a_batch_gives_what_one_document_at_a_time_gives() -> None:
    texts = {"a": SOUP, "b": BREAD, "c": f"{SOUP} {SALT}", "d": SALT}
    records: list[tuple[str, dict[str, str] | None]] = [(name, {"text": text}) for name, text in texts.items()]
    records += [("a", {"text": BREAD}), ("e", {"text": SOUP}), ("d", None), ("f", {"text": SALT}), ("g", {"text": ""})]
    records += [
        ("h", {"text": SALT, "collection": "other"}),
        ("i", {"text": f"{BREAD} {SALT}"}),
        ("b", {"text": BREAD}),
    ]
    items = [item(offset, name, fields) for offset, (name, fields) in enumerate(records)]
    alone, together = [
        [outcome async for outcome in embedded(Deployment.of(load({}))).outcomes(items, batch=batch)]
        for batch in (1, 64)
    ]
    assert together == alone
    assert {each.verdict.verdict for each in alone if each.verdict} >= {"unique", "containment", "exact_duplicate"}
