"""What happens to a text before its normal form is made."""

from nearstream.streams.fingerprints.mail_form import mask_personal
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.plain_letters import plain_letters


def rewritten(text: str, rules: TextRules) -> str:
    """Return a text in plain letters, and with personal words masked, if the rules say so."""
    text = plain_letters(text) if rules.spelling else text
    return mask_personal(text, rules) if rules.masks else text
