"""Read the HTML of a mail, in the process that parses HTML."""

import re
from collections.abc import Iterator

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from nearstream.workers.crawl.html_markup import BEGIN, END, READINGS, closed, count_words, opened, values_of
from nearstream.workers.crawl.html_seen import found, remove, take_unseen

_LEFT_OUT = "\x1f"  # which no part begins with, because it is a blank
_FEW_WORDS, _FEW_CHARACTERS, _HIDDEN_WORDS = 8, 256, 40
_STYLE_NAME = re.compile(r"(?<=[\s\"'/])(?:style|hidden)(?=[\s=>/])", re.IGNORECASE)
# What mail programs put around a text that is answered.
_QUOTES = "blockquote[type=cite], .gmail_quote, .yahoo_quoted, .protonmail_quote, .moz-cite-prefix"
_HOST = re.compile(r"\s{0,64}(?:https?:)?//[^\s/?#\\<>\"']{1,300}", re.IGNORECASE)
_LINKS_MAX = 1_000
_LINKING = ("a", "area", "form")
_INPUT = re.compile("<input", re.IGNORECASE)


def visible_text(html: str) -> str:
    """Return the visible text of the HTML of a mail, and where its links lead.

    Each block of text has its lines, and those of a quote begin with `>`. Each address is on a line of its own behind
    them, after a sign, up to its host. If fewer than 8 of more than 40 words are visible, or none of more than 8,
    all count.
    """
    html = opened(closed(html))
    tree = HTMLTree.parse(html)
    take_unseen(tree, html)
    for element in found(tree.body, "[noscript]") if tree.body else ():  # which hardly a mail program shows
        remove(element)
    text = _mail_text(tree, html)
    if count_words(text[:_FEW_CHARACTERS]) < _FEW_WORDS:
        whole = HTMLTree.parse(_STYLE_NAME.sub("", html))
        words = _mail_text(whole, html)
        least = _HIDDEN_WORDS if count_words(text) else _FEW_WORDS
        tree, text = (whole, words) if count_words(words) > least else (tree, text)
    return "\n".join([text, *(_LEFT_OUT + link for link in _links(tree, html.lower()))])


def _mail_text(tree: HTMLTree, html: str) -> str:
    if tree.body is None:
        return ""
    for field in found(tree.body, "input") if _INPUT.search(html) else ():
        value = tree.create_text_node(f" {' '.join(values_of(field))} ")
        if field.parent is not None and value is not None:
            field.parent.insert_before(value, field)
    quotes = found(tree.body, _QUOTES) if "quote" in html or "moz-cite" in html else ()
    for quote in quotes:
        begin, end = tree.create_text_node(BEGIN), tree.create_text_node(END)
        if begin is not None and end is not None and quote.first_child is not None:
            quote.insert_before(begin, quote.first_child)
            quote.append_child(end)
    text = extract_plain_text(
        tree, preserve_formatting=True, list_bullets=False, alt_texts=False, skip_elements=READINGS
    )
    return "\n".join(_quoted(text)) if quotes else text


def _quoted(text: str) -> Iterator[str]:
    """Yield the lines of a text, with `>` before those between marks."""
    depth = 0
    for line in text.split("\n"):
        within = depth + line.count(BEGIN)
        depth = max(0, within - line.count(END))
        yield "> " * (within > 0) + line.replace(BEGIN, "").replace(END, "")


def _links(tree: HTMLTree, html: str) -> list[str]:
    """Return the addresses of visible links, up to their hosts."""
    hosts: set[str] = set()
    for name in _LINKING:
        for link in tree.body.get_elements_by_tag_name(name)[:_LINKS_MAX] if tree.body and f"<{name}" in html else ():
            target = _HOST.match(link.getattr("href") or link.getattr("action") or "")
            if target and target[0] not in hosts and (link.first_element_child or (link.text or "").strip()):
                hosts.add(target[0])
    return sorted(hosts)
