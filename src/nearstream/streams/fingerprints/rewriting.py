"""What happens to a text before its normal form is made."""

from hashlib import blake2b
from typing import Final

from nearstream.streams.fingerprints.mail_form import mask_personal
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.notices import Split, split_notices
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.plain_words import plain_words

WITHOUT_NOTICES: Final = "mail/2"
_WORD_LETTERS = 12  # fewer than a window has bytes, so that this word makes no two mails alike
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")  # digits are masked


def rewritten(text: str, rules: TextRules) -> str:
    """Return a text in its plain spelling, masked and without notices, as the rules say."""
    own, common = own_text(text, rules)
    word = _word_for(common, rules)
    plain = plain_text(own, rules)
    return f"{plain}\n{word}" if word else plain


def own_text(text: str, rules: TextRules) -> Split:
    """Split the notices from a text, if the rules leave them out."""
    return split_notices(text) if rules.masks == WITHOUT_NOTICES else Split(text)


def plain_text(text: str, rules: TextRules) -> str:
    """Return a text or a part of it in its plain spelling, masked."""
    if rules.spelling:
        # Python has another lower case of this letter at the end of a word.
        text = plain_words(text, rules).replace("\u03a3", "\u03c3")
    return mask_personal(text, rules) if rules.masks else text


def _word_for(common: str, rules: TextRules) -> str:
    """Return a word that represents notices, so that other notices make another text."""
    form = normalize(plain_text(common, rules), rules).data if common else b""
    return blake2b(form).hexdigest().translate(_LETTERS)[:_WORD_LETTERS] if form else ""
