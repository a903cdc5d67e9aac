"""Made-up web pages with navigation, frames and footers around an article."""

import random
from collections.abc import Iterator

WORDS = [f"word{number}" for number in range(400)]


def pages(count: int, seed: int = 7) -> Iterator[str]:
    """Yield pages of about 15 to 200 KB of HTML, whose frame is several times their article."""
    draw = random.Random(seed)
    menu = "".join(f"<li class='nav-item'><a href='/topic/{number}'>{_words(draw, 2)}</a></li>" for number in range(80))
    for number in range(count):
        body = "".join(f"<p>{_words(draw, 60).capitalize()}. <em>{_words(draw, 9)}</em></p>" for _ in range(12))
        asides = "".join(
            f"<div class='teaser'><h3><a href='/story/{place}'>{_words(draw, 6)}</a></h3><span>{place} min</span></div>"
            for place in range(draw.randrange(50, 900))
        )
        yield (
            f"<!doctype html><html><head><title>Story {number}</title><style>{'.a{color:red}' * 300}</style>"
            f"<script>{'var a = 1;' * 400}</script></head><body><header><nav><ul>{menu}</ul></nav></header>"
            f"<main><article><h1>Story {number}</h1>{body}</article></main><aside class='sidebar'>{asides}</aside>"
            f"<footer>{menu}</footer></body></html>"
        )


def _words(draw: random.Random, count: int) -> str:
    return " ".join(draw.choices(WORDS, k=count))
