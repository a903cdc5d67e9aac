"""What happens to a text before its normal form is made."""

from nearstream.streams.fingerprints.mail_form import mask_personal
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.plain_letters import plain_letters
from nearstream.streams.fingerprints.plain_words import plain_words


def rewritten(text: str, rules: TextRules) -> str:
    """Return a text in plain letters, and with personal words masked, if the rules say so."""
    if rules.spelling == "plain/2":
        text = plain_words(text, rules)
    elif rules.spelling:
        text = plain_letters(text)
    return mask_personal(text, rules) if rules.masks else text
