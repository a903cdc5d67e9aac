"""Prepare HTML for its parser, and read what the parser leaves out."""

import re

from resiliparse.parse.html.node import ElementNode

_VALUE_UNSEEN = frozenset(["hidden", "checkbox", "radio", "image", "password", "color", "range"])
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_SPACELESS}]{{1,2}}|[^\W{_SPACELESS}]+")
# Code points that are no characters, outside the plane of which Resiliparse leaves out single symbols.
BEGIN, END, IMAGE, ALT = "\U0001fffe", "\U0001ffff", "\U0002fffe", "\U0002ffff"
_XML_WITHIN = 64
_EMPTY = re.compile(r"<(iframe|noframes|noscript|script|style|textarea|title)\b([^<>]*+)(?<=/)>", re.IGNORECASE)
# Resiliparse leaves these out with their text, such as the caption of a picture.
_PASSED_OVER = re.compile(
    r"<(/?)(?=[bflnost])(button|f(?:ig(?:caption|ure)|rameset)|l(?:abel|egend)|no(?:frames|script)|o(?:bject|pt(?:group|ion))|s(?:elect|ummary|vg)"
    r"|text(?:area)?)(?![^\s/>])",
    re.IGNORECASE,
)
_OPENED = r"<\1div \2"  # with the former name as an attribute
READINGS = ["rp", "rt"]  # which repeat the words below them


def closed(html: str) -> str:
    """Return XHTML with end tags for empty elements, such as `<title/>`.

    Without them a parser of HTML takes all that follows for their content.
    """
    return _EMPTY.sub(r"<\1\2></\1>", html) if html[:_XML_WITHIN].lstrip().startswith("<?xml") else html


def opened(html: str) -> str:
    """Return HTML in which the parser passes over no element with text."""
    return _PASSED_OVER.sub(_OPENED, html)


def values_of(element: ElementNode) -> list[str]:
    """Return what an element shows of its attributes."""
    if element.tag != "input":
        return [value for name in ("placeholder", "srcdoc", "label") if (value := element.getattr(name))]
    if (element.getattr("type") or "").lower() in _VALUE_UNSEEN:
        return []
    return [value for name in ("value", "placeholder") if (value := element.getattr(name))]


def count_words(text: str) -> int:
    """Return the number of words, in scripts without blanks that of pairs of characters."""
    return len(_WORD.findall(text))
