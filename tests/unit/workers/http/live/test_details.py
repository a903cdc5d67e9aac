"""Two documents are shown beside each other from whole signatures, and from what an index keeps of them."""

import pytest

from nearstream.schemas.documents.document import Document, from_milliseconds
from nearstream.schemas.documents.signature import Signature
from nearstream.workers.config.settings import load
from nearstream.workers.http.live.details import pair_of
from nearstream.workers.pipeline.deployment import Deployment
from tests.support.live import NOW_MS

DEPLOYMENT = Deployment.of(load({}))
WORDS = [f"word{number}" for number in range(900)]


def _signed(name: str, words: list[str], at_ms: int = NOW_MS, collection: str = "news") -> Signature:
    document = Document(id=name, text=" ".join(words), observed_at=from_milliseconds(at_ms), collection=collection)
    return DEPLOYMENT.signer().sign(document)


FIRST, EDITED = _signed("first", WORDS), _signed("edited", [*WORDS[:400], "new", *WORDS[400:]], NOW_MS + 1)


def test_a_pair_shows_what_both_share() -> None:
    pair = pair_of(FIRST, EDITED, DEPLOYMENT)
    assert (pair.newer.id, pair.older.id, pair.relation) == ("edited", "first", "near_duplicate")
    assert pair.added is not None
    assert pair.removed is not None
    assert pair.added - pair.removed == EDITED.characters - FIRST.characters
    assert pair.keys is not None
    assert pair.keys.anchors > 50
    assert pair.spans
    assert not any(span.moved for span in pair.spans)
    decided = next(rule for rule in pair.rules if rule.holds)
    assert (decided.name, decided.relation) == (pair.rule, pair.relation)
    assert pair_of(EDITED, FIRST, DEPLOYMENT) == pair
    with pytest.raises(ValueError, match="collection"):
        pair_of(FIRST, _signed("first", WORDS, collection="mail"), DEPLOYMENT)


def test_moved_passages_are_marked_and_an_unrelated_pair_has_a_picture_too() -> None:
    moved = pair_of(FIRST, _signed("moved", [*WORDS[600:], *WORDS[:600]], NOW_MS + 1), DEPLOYMENT)
    assert (moved.relation, {span.moved for span in moved.spans}) == ("rearranged", {True, False})
    other = pair_of(FIRST, _signed("other", [f"else{number}" for number in range(500)]), DEPLOYMENT)
    assert (other.relation, other.spans) == ("unrelated", ())
