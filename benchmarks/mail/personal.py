"""Personalised copies of a mail, as a campaign sends them."""

import random
import re

_FIRST = ("Anna", "Bob", "Carla", "David", "Emma", "Frank", "Greta", "Hans", "Ida", "John", "Karin", "Louis", "Maria")
_LAST = ("Smith", "Meyer", "Jones", "Garcia", "Rossi", "Novak", "Dubois", "Jansen", "Silva", "Kowalski")
_URL = re.compile(r"https?://[^\s<>\"']{1,2000}")
_EVERY = 60  # words between two personal ones


def personalised(text: str, draw: random.Random, *, with_names: bool = False) -> str:
    """Return a copy of a mail with a greeting, own queries in its URLs, a personal word every 60, and a footer.

    Args:
        text: The mail.
        draw: Where the recipient comes from.
        with_names: The personal words are names, which no mask knows, instead of tokens.
    """
    first, last = draw.choice(_FIRST), draw.choice(_LAST)
    words = []
    for number, word in enumerate(text.split(" "), 1):
        words.append(word)
        if number % _EVERY == 0:
            words.append(first if with_names else f"{draw.getrandbits(40):010x}7")
    body = _URL.sub(lambda url: f"{url[0]}{'&' if '?' in url[0] else '?'}id={draw.getrandbits(40):x}", " ".join(words))
    address = f"{first}.{last}{draw.randrange(100)}@{last}.example".lower()
    link = f"https://list.example/u?{draw.getrandbits(50):x}"
    return f"Dear {first} {last},\n\n{body}\n\nThis mail was sent to {address}. Unsubscribe: {link}\n"
