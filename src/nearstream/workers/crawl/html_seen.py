"""Remove hidden text from HTML.

The process that parses HTML imports this module, so it imports nothing else of nearstream.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from html import unescape
from itertools import islice, product
from typing import NamedTuple

from resiliparse.parse.html import HTMLTree
from resiliparse.parse.html.exception import CSSParserException
from resiliparse.parse.html.node import DocumentNode, ElementNode, TextNode

_STYLE_MAX_CHARACTERS = 4_096
_SHEETS_MAX_CHARACTERS = 64 * 1024
_RULES_MAX = 500
_MATCHES_MAX = 20_000  # of rules and elements
_COLOURS_MAX = 64
_ANCESTORS_MAX = 100
_SHORT = 5  # characters of a colour with one digit for each of its parts
_NEAR = 16  # of 255, which a person does not see
_STYLES = re.compile(r"""style\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>]++)""")
_GROUNDS = re.compile(r"""bgcolor\s*+=\s*+["']?([#\w]{3,20})""")
_COLOURS = [
    re.compile(rf"""<{tag}\s*+=\s*+["']?([#\w]{{3,20}})""")
    for tag in (r"font\s[^<>]{0,500}?color", r"body\s[^<>]{0,500}?\stext")
]
_COMMENT = re.compile(r"/\*(?>(?:[^*]++|\*(?!/))*)(?:\*/|\Z)|<!--|-->")
_FOR_SCREENS = re.compile(r"@media\s++(?:only\s++)?(?:screen|all)\s*+\{((?>(?:[^{}]++|\{[^{}]*+\})*))\}?", re.I)
_AT_RULE = re.compile(r"@[^{};@]*+(?:;|\{(?>(?:[^{}]++|\{[^{}]*+\})*)\}?)")
_DECLARATION = re.compile(r"([a-z-]{2,40})\s*+:\s*+([^;]{1,1000})")
_NEVER_SEEN_NAMES = ("hidden", "<template", "<datalist")
_NEVER_SEEN = "title, template, datalist, [hidden]"
_WITH_ATTRIBUTES = "[bgcolor], [background], font[color], font[size], body[text]"
_ZERO = r"(?:0++(?:\.[01]\d*+)?|\.[01]\d*+)"  # or nearly so
_NOTHING = rf"(?:{_ZERO}(?:%|[a-z]*+)|0*[01]?(?:\.\d++)?p[xt])(?![\w.%])"
_FAR = r"(?:[^;]*[\s(,])?-(?:(?:\d{4,}|999)(?![\d.]*%)|\d{2,}r?em|\d{3,}(?:%|v[wh]))"  # above a page, or left of it
# Values of properties that hide an element with all that is in it.
_HIDING = {
    name: re.compile(value)
    for name, value in {
        **dict.fromkeys(["margin", "margin-left", "margin-top"], _FAR),
        **{"display": "none", "content-visibility": "hidden", "mso-hide": "all"},
        **dict.fromkeys(["opacity", "zoom"], rf"{_ZERO}%?(?![\w.%])"),
        **{"filter": rf"[^;]*opacity\(\s*{_ZERO}%?\s*\)", "text-indent": rf"{_FAR}|-?\d{{3,}}%"},
        **{"transform": rf"[^;]*(?:scale\w{{0,2}}\(\s*{_ZERO}\s*[,)]|translate\w{{0,2}}\({_FAR})"},
        **{"clip": r"rect\((?:[\s,]*[01](?:px)?)+\s*\)", "clip-path": r"inset\(\s*(?:[5-9]\d|100)%|circle\(\s*0"},
    }.items()
}
_OFFSETS = {name: re.compile(_FAR) for name in ("left", "right", "top", "bottom", "inset")}  # of what has a position
_LENGTHS = ("width", "height", "max-width", "max-height")  # of what is cut off
_HIDING_NAMES = frozenset([*_HIDING, *_OFFSETS, *_LENGTHS, "font", "visibility"])
_PAINTING_NAMES = frozenset(["background", "color"])
_LOOK_NAMES = _HIDING_NAMES | _PAINTING_NAMES
_WEIGHED = [re.compile(part) for part in ("#", r"[.:\[]", r"(?<![\w.#:\[-])[a-zA-Z]")]
_CUT_OFF = re.compile("hidden|clip|auto|scroll")
_NO_LENGTH = re.compile(_NOTHING)
_NO_SIZE = rf"(?:0*[0-2]?(?:\.\d++)?p[xt]|{_ZERO}(?:%|[a-z]*+))(?![\w.%])"
_SMALL = re.compile(rf"\A(?:[^;]*\s)?{_NO_SIZE}")
# Such a size is a part of that of the element around it.
_RELATIVE = re.compile(r"\A(?:[^;]*\s)?(?:[\d.]++(?:%|em|ex|ch)|inherit|larger|smaller|unset)")
_COLOUR = re.compile(r"#[\da-f]{3,8}|rgba?\([^)]{0,60}\)|[a-z]{3,20}(?![\w(-])")
_NUMBER = re.compile(r"(\d*\.?\d+)(%?)")
_NO_COLOUR = frozenset(["inherit", "initial", "none", "unset", "currentcolor"])
_TRANSPARENT, _UNKNOWN = "transparent", "?"
_NAMES = {
    **dict.fromkeys(["white", "snow", "ivory", "ghostwhite", "floralwhite", "whitesmoke", "azure"], "#fafafa"),
    **{"black": "#000", "gray": "#808080", "grey": "#808080"},
}
Paint = tuple[float, ...] | str  # red, green and blue, or a name
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)


class _Look(NamedTuple):
    """What is said about how an element looks. None: nothing is said."""

    is_gone: bool = False  # with all that is in it
    has_size: bool | None = None
    is_shown: bool | None = None
    colour: Paint | None = None
    ground: Paint | None = None  # behind it


_Looks = dict[ElementNode, _Look]
_Rule = tuple[str, str]  # a selector and its declarations


def found(element: ElementNode | DocumentNode, selector: str) -> Sequence[ElementNode]:
    """Return elements all at once, because one by one takes the square of their number."""
    return element.query_selector_all(selector)[:]


def take_unseen(tree: HTMLTree, html: str) -> None:
    """Remove from a tree what its attributes, styles and style sheets hide.

    Of the rules of style sheets those for any screen count. Of two rules the one with more in its selector wins, else
    the last one.
    """
    document, body, html = tree.document, tree.body, html.lower()
    if document is None or body is None:
        return
    has_title = html.rfind("<title") > html.find("</head")
    for element in found(body, _NEVER_SEEN) if has_title or any(name in html for name in _NEVER_SEEN_NAMES) else ():
        remove(element)
    rules = sorted(_rules(found(document, "style")), key=_weight) if "<style" in html else []
    styles = {unescape(style.strip("\"'"))[:_STYLE_MAX_CHARACTERS] for style in _STYLES.findall(html)}
    styles.update(style for _, style in rules)
    painted = [_Look(colour=_paint(name)) for colours in _COLOURS for name in set(colours.findall(html))]
    painted += [_Look(ground=_paint(name)) for name in set(_GROUNDS.findall(html))]
    hiding = [style for style in styles if _hides(_look(style))]
    suspected = _suspected([*painted, *map(_look, styles)])
    if suspected or hiding:
        names = {name for name in _HIDING_NAMES if any(name in style for style in hiding)}
        _take(_looks(document, rules, names | (_PAINTING_NAMES if suspected else set())), suspected)


def _hides(look: _Look) -> bool:
    return look.is_gone or look.has_size is False or look.is_shown is False


def remove(element: ElementNode) -> None:
    """Take an element out of its page, but keep it in memory for those in it."""
    if element.parent is not None:
        element.parent.remove_child(element)


def _take(looks: _Looks, suspected: set[Paint]) -> None:
    for element, look in looks.items():
        if look.is_gone and element.tag not in ("body", "html"):
            remove(element)
        if look.has_size is False:
            _take_texts(element, looks, lambda each: each.has_size is not None)
        if look.is_shown is False:
            _take_texts(element, looks, lambda each: each.is_shown is not None)
        if suspected.intersection((look.colour, look.ground)) and _is_in_its_ground(element, looks):
            _take_texts(element, looks, lambda each: each.colour is not None or each.ground is not None)


def _take_texts(element: ElementNode, looks: _Looks, has_own: Callable[[_Look], bool]) -> None:
    """Remove the texts of an element, except in elements with a style of their own."""
    left = [element]
    blank = " " if element.first_element_child else ""  # between elements that are seen
    while left:
        node = left.pop().first_child
        while node is not None:
            if isinstance(node, TextNode):
                node.value = blank if (node.value or "").isspace() else ""
            elif isinstance(node, ElementNode) and not has_own(looks.get(node, _Look())):
                left.append(node)
            node = node.next


def _is_in_its_ground(element: ElementNode, looks: _Looks) -> bool:
    """Return whether the text of an element has the colour of what is behind it."""
    colour, ground, node = None, None, element
    for _ in range(_ANCESTORS_MAX):
        look = looks.get(node, _Look())
        colour = look.colour if colour is None else colour
        ground = look.ground if ground is None and look.ground != _TRANSPARENT else ground
        parent = node.parent
        if (colour and ground) or not isinstance(parent, ElementNode):
            return _is_near(colour or _BLACK, ground or _WHITE)
        node = parent
    return False


def _suspected(looks: Iterable[_Look]) -> set[Paint]:
    """Return the colours that may be those of a text and of what is behind it."""
    alone = {look for look in looks if look.colour is None or look.ground is None or _is_near(look.colour, look.ground)}
    if not any(look.colour or look.ground for look in alone):
        return set()
    colours = {_BLACK, *(look.colour for look in alone if look.colour is not None)}
    grounds = {_WHITE, *(look.ground for look in alone if look.ground is not None)}
    few = product(islice(colours, _COLOURS_MAX), islice(grounds, _COLOURS_MAX))
    return {paint for pair in few if _is_near(*pair) for paint in pair}


def _is_near(colour: Paint, ground: Paint) -> bool:
    if isinstance(colour, str) or isinstance(ground, str):
        return colour == _TRANSPARENT or (colour == ground != _UNKNOWN)
    return all(abs(one - other) <= _NEAR for one, other in zip(colour, ground, strict=True))


def _looks(root: DocumentNode, rules: list[_Rule], names: set[str]) -> _Looks:
    """Return how each element looks for which these properties may be stated."""
    styled = found(root, ",".join(f'[style*="{name}" i]' for name in names))
    styles = {element: (element.getattr("style") or "")[:_STYLE_MAX_CHARACTERS].lower() for element in styled}
    left = _MATCHES_MAX
    for selector, style in reversed([rule for rule in rules if any(name in rule[1] for name in names)]):
        try:
            matched = root.query_selector_all(selector)[:left]
        except CSSParserException:
            continue
        left -= len(matched)
        for element in matched:
            own = styles.get(element, "")
            styles[element] = f"{own};{style}" if "important" in style else f"{style};{own}"
    looks = {element: _look(style) for element, style in styles.items()}
    for element in found(root, _WITH_ATTRIBUTES):
        looks[element] = _with_attributes(element, looks.get(element, _Look()))
    return looks


def _with_attributes(element: ElementNode, look: _Look) -> _Look:
    colour, ground = element.getattr("color") or element.getattr("text"), element.getattr("bgcolor")
    return look._replace(
        has_size=True if look.has_size is None and element.hasattr("size") else look.has_size,
        colour=look.colour or _paint((colour or "inherit").lower()),
        ground=look.ground or (_UNKNOWN if element.hasattr("background") else _paint((ground or "none").lower())),
    )


def _rules(sheets: Iterable[ElementNode]) -> Iterator[_Rule]:
    """Yield the rules of style sheets that may hide something, or show what another rule hides."""
    text = "\n".join(sheet.text or "" for sheet in sheets)[:_SHEETS_MAX_CHARACTERS]
    text = _AT_RULE.sub("", _FOR_SCREENS.sub(r"\1", _COMMENT.sub("", text)))
    for rule in text.split("}", _RULES_MAX)[:_RULES_MAX]:
        selector, _, declarations = rule.partition("{")
        style = declarations.lower()[:_STYLE_MAX_CHARACTERS]
        if any(name in style for name in _LOOK_NAMES):
            yield selector.strip(), style


def _weight(rule: _Rule) -> tuple[int, ...]:
    """Return how many ids, classes and names of elements a selector has, of several selectors the largest numbers."""
    weights = ([len(part.findall(each)) for part in _WEIGHED] for each in rule[0].split(","))
    return tuple(max(weights))


@lru_cache(1_000)
def _look(style: str) -> _Look:
    """Return what declarations say. Of two about one property the last one counts."""
    values: dict[str, str] = dict(_DECLARATION.findall(_COMMENT.sub("", style) if "/*" in style else style))
    size = values.get("font-size", values.get("font", "inherit"))
    is_shown = None if "visibility" not in values else not values["visibility"].startswith(("hidden", "collapse"))
    grounds = (_ground(values.get(name, "none")) for name in ("background-image", "background-color", "background"))
    return _Look(
        _is_gone(values),
        False if _SMALL.match(size) else None if _RELATIVE.match(size) else True,
        is_shown,
        _paint(values.get("color", "inherit")),
        next((ground for ground in grounds if ground is not None), None),
    )


def _is_gone(values: dict[str, str]) -> bool:
    is_placed = values.get("position", "static").strip() != "static"
    is_moving = any(name.startswith("animation") for name in values)  # and is seen in the end
    hiding = {} if is_moving else _HIDING | _OFFSETS if is_placed else _HIDING
    if any(name in hiding and hiding[name].match(value) for name, value in values.items()):
        return True
    is_cut_off = any(name.startswith("overflow") and _CUT_OFF.match(value) for name, value in values.items())
    return is_cut_off and any(_NO_LENGTH.match(values.get(name, "seen")) for name in _LENGTHS)


def _ground(value: str) -> Paint | None:
    return _UNKNOWN if any(name in value for name in ("url(", "gradient(", "var(")) else _paint(value)


@lru_cache(1_000)
def _paint(value: str) -> Paint | None:
    """Return a colour, or None if it is that of the element around."""
    colour = _COLOUR.search(value)
    name = _NAMES.get(colour[0], colour[0]) if colour else ""
    if not name or name in _NO_COLOUR:
        return None
    if name.startswith("#"):
        digits = "".join(digit * (1 + (len(name) <= _SHORT)) for digit in name[1:])
        numbers = [float(int(digits[at : at + 2], 16)) for at in range(0, len(digits), 2)]
    elif name.startswith("rgb"):
        numbers = [float(number) * (2.55 if percent else 1) for number, percent in _NUMBER.findall(name)]
    else:
        return name
    red, green, blue, opacity, *_ = (*numbers, 1.0, 1.0, 1.0, 1.0)
    return (red, green, blue) if opacity else _TRANSPARENT
