"""Cases 1 to 6: documents that share a frame, such as navigation, a notice, or the layout of a newsletter."""

from collections.abc import Sequence
from itertools import combinations

from benchmarks.judgement.cases import Case, Expected, Material, Stream, Told, each, related, silence
from benchmarks.judgement.judges import is_at_place
from benchmarks.quality import frames
from benchmarks.quality.corpus import Text
from benchmarks.stream.prose import joined

_SITES = 12
_FRAME = 300  # words
_ARTICLE = 150


def one_site(material: Material) -> Stream:
    """Return 600 pages with 300 words of navigation and footer, 80 of them fetched again."""
    made = frames.one_site(material.prose, material.draw)
    texts = {text.id: text for text in made.texts}
    again = [sorted(both) for both in made.same]  # `p1` comes before `p1-again`
    return Stream(made.texts, [Expected(texts[older], texts[newer]) for older, newer in again])


def notices(material: Material) -> Stream:
    """Return 300 mails with one notice of 75 words."""
    return _all_apart(frames.notices(material.prose, material.draw).texts)


def newsletters(material: Material) -> Stream:
    """Return 60 issues of a newsletter."""
    return _all_apart(frames.newsletters(material.prose, material.draw).texts)


def other_articles(material: Material) -> Stream:
    """Return pages of 12 sites, each with an article of its own. Pages of one site are apart."""
    sites = _frames(material)
    pages = {name: [_page(material, f"{name}-{n}", sites[name]) for n in range(material.pairs // 2)] for name in sites}
    texts = [text for site in pages.values() for text in site]
    material.draw.shuffle(texts)
    apart = [frozenset((one.id, other.id)) for site in pages.values() for one, other in combinations(site, 2)]
    return Stream(texts, [], apart)


def syndicated(material: Material) -> Stream:
    """Return articles that appear on two of 12 sites, among 300 other pages."""
    sites = _frames(material)
    expected = []
    for number in range(material.pairs):
        one, other = material.draw.sample(sorted(sites), 2)
        article = material.prose.words(_ARTICLE)
        older, newer = (_framed(f"s{number}-{site}", sites[site], article) for site in (one, other))
        expected.append(Expected(older, newer, " ".join(article)))
    return _among_pages(material, sites, expected)


def parts(material: Material) -> Stream:
    """Return articles of 300 words, and a part of 120 words of each on another site, among 300 other pages."""
    sites = _frames(material)
    expected = []
    for number in range(material.pairs):
        one, other = material.draw.sample(sorted(sites), 2)
        article, start = material.prose.words(2 * _ARTICLE), material.draw.randrange(180)
        part = article[start : start + 120]
        older = _framed(f"w{number}", sites[one], article)
        expected.append(Expected(older, _framed(f"t{number}", sites[other], part), " ".join(part)))
    return _among_pages(material, sites, expected)


def _all_apart(texts: list[Text]) -> Stream:
    return Stream(texts, [], [frozenset((one.id, other.id)) for one, other in combinations(texts, 2)])


def _frames(material: Material) -> dict[str, tuple[list[str], list[str]]]:
    """Return head and foot of each site."""
    return {
        f"site{n}": (material.prose.words(_FRAME * 2 // 3), material.prose.words(_FRAME // 3)) for n in range(_SITES)
    }


def _framed(name: str, frame: tuple[Sequence[str], Sequence[str]], article: Sequence[str]) -> Text:
    return Text(name, joined([frame[0], article, frame[1]]))


def _page(material: Material, name: str, frame: tuple[Sequence[str], Sequence[str]]) -> Text:
    return _framed(name, frame, material.prose.words(_ARTICLE))


def _among_pages(
    material: Material, sites: dict[str, tuple[list[str], list[str]]], expected: Sequence[Expected]
) -> Stream:
    """Return the pairs with 300 other pages, each pair in its order."""
    names = sorted(sites)
    others = [_page(material, f"x{n}", sites[material.draw.choice(names)]) for n in range(300)]
    placed = [(material.draw.random(), text) for text in others]
    for pair in expected:
        times = sorted((material.draw.random(), material.draw.random()))
        placed += zip(times, (pair.older, pair.newer), strict=True)
    placed.sort(key=lambda place: place[0])
    return Stream([text for _, text in placed], list(expected))


def _is_told_at_place(told: Told) -> bool:
    return bool(told.relation) and is_at_place(told)


CASES = (
    Case(
        1,
        "pages of one site, 80 fetched again",
        "only second fetches",
        one_site,
        (each("found", 1.0, related()),),
        0.05,
    ),
    Case(2, "mails with one notice", "nothing", notices, (silence(0.98),)),
    Case(3, "issues of a newsletter", "nothing", newsletters, (silence(0.98),)),
    Case(4, "other articles in one frame", "nothing", other_articles, (silence(0.98),)),
    Case(
        5,
        "an article in two frames",
        "the article, and where",
        syndicated,
        (each("told", 0.95, related()), each("told, place right", 0.95, _is_told_at_place)),
    ),
    Case(
        6,
        "a part of an article, in two frames",
        "the part, and where",
        parts,
        (each("told", 0.95, related()), each("told, place right", 0.95, _is_told_at_place)),
    ),
)
