"""Say where new text is in a text as it was sent."""

from collections.abc import Iterable
from dataclasses import replace

from nearstream.schemas.documents.evidence import Place
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.sent_places import sent_places
from nearstream.streams.relations.novelty import Novelty, longest_first


def novelty_in_text(found: Novelty, text: str, rules: TextRules) -> Novelty:
    """Return a novelty with places in a text.

    Args:
        found: A novelty with places in the normal form.
        text: The text as it was sent.
        rules: The rules of the normal form.
    """
    if not found.novel_spans:
        return found
    is_whole = not found.sources and found.added is None
    return replace(found, novel_spans=((0, len(text)),) if is_whole else sent_spans(found.novel_spans, text, rules))


def sent_spans(spans: Iterable[Place], text: str, rules: TextRules) -> tuple[Place, ...]:
    """Return the places of spans in a text, the longest first. They are given in its normal form."""
    return longest_first(sent_places(text, spans, rules))
