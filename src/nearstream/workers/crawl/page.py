"""Turn the HTML of documents into text, for one page or for a batch."""

import asyncio
import logging
import re
import time
from base64 import b32encode
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha1
from typing import NamedTuple

import msgspec
from w3lib.encoding import html_body_declared_encoding

from nearstream.schemas.documents.document import LABELS_MAX, SURROUNDINGS_LABEL, Document
from nearstream.schemas.documents.record import PageFacts
from nearstream.streams.estimates.frames import ADDRESS, masked, pack_parts
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.plain_letters import without_fillers
from nearstream.streams.ingest.charset import REPLACEMENT, Decoded, charset_named, decode
from nearstream.streams.ingest.defaults import declared_name
from nearstream.streams.ingest.parse import CHARSET_REPLACED
from nearstream.streams.ingest.sites import site_of
from nearstream.streams.signing.signer import MAX_BYTES, Unsigned
from nearstream.workers.crawl.html_processes import HtmlProcesses, PageText
from nearstream.workers.crawl.html_text import EXTRACTION_FALLBACK, for_parser, strip_tags

CONTENT_TYPE_MAX_CHARACTERS = 256
_LABEL = re.compile(r"""charset\s{0,8}=\s{0,8}["']?\s{0,8}([^\s"';,]{1,64})""", re.IGNORECASE)
TRUNCATED = "truncated"
CONTENT_UNREAD = "content_unread"  # something that is seen is compared nowhere
MAIN_CONTENT_SMALL = "main_content_small"
SHELL = "shell"  # what a page shows until its scripts run
_SHELL_MAX_CHARACTERS = 300
_SHELL = re.compile(
    r"\b(?:loading|redirecting|please wait|just a moment|enable cookies|wird geladen|bitte warten|chargement"
    r"|veuillez patienter|cargando|caricamento|carregando|laddar|bezig met laden|ładowanie|načítá\w*|yükleniyor"
    r"|загрузка|подождите)\b|javascript|lädt ?(?:…|\.\.)|加载中|載入中|请稍候|読み込み|로딩|جار التحميل",
    re.IGNORECASE,
)
MAIN, ALL, WITH_LINKS = "main", "all", "-links"
_PROCESSES = 2
# A batch that needs longer has pages that were made to take long. Its other pages take milliseconds.
_PATIENCE_SECONDS = 10.0
_IMPATIENT_SECONDS = 0.25
log = logging.getLogger(__name__)


def decode_page(data: bytes, content_type: str) -> Decoded:
    """Decode the bytes of a web page.

    Its charset is declared by its content type, or else by an element `meta`, see `decode`.
    """
    of_header = _LABEL.search(content_type[:CONTENT_TYPE_MAX_CHARACTERS])
    labels = [of_header[1] if of_header else "", html_body_declared_encoding(data) or ""]
    # UTF-7 hides markup, and no browser reads it.
    return decode(data, [label for label in labels if charset_named(label) != "utf-7"])


class Page(NamedTuple):
    """What was read of a web page."""

    title: str  # Its title in one line. It is not a part of the text. Empty if only the tags were stripped.
    text: str  # its main content, or all of its text, cut off at the limit of a text
    # What was incomplete: `charset_replaced`, `extraction_fallback`, `truncated`. `main_content_small`: all text was
    # read, because the main content was too small. `shell`: scripts would show the text.
    degraded: tuple[str, ...]
    # The hashes of all parts that are seen, packed. Empty without a key, or if something was incomplete.
    parts: bytes = b""
    declared: str = ""  # The target of `rel=canonical`, as it is written. Empty: there is none, or there are several.
    # A keyed digest of all text that is seen, in hex. Empty: that is the text, or there is no key.
    surroundings: str = ""


ReadDocument = tuple[Unsigned, PageFacts]  # a document with its text, and what else was read of the page that it was


class PageReader:
    """Reads web pages, with processes for Resiliparse that it starts when they are needed.

    Without the extra `html` the tags of each page are stripped.
    """

    def __init__(
        self,
        content: str = MAIN,
        text_max_bytes: int = MAX_BYTES,
        processes: HtmlProcesses | None = None,
        key: HashKey | None = None,
    ) -> None:
        """Prepare reading, by default with two processes for Resiliparse.

        The content is `main` for the main content of each page, or `all` for all of its text, and `-links` behind
        either to have the targets of links and the addresses of images in the text. What is longer than a text may be
        is cut off. Without a key there are no hashes of parts.
        """
        self._main_content, self._links = content.startswith(MAIN), content.endswith(WITH_LINKS)
        self._text_max_bytes = text_max_bytes
        self._key = key
        self._processes = processes or HtmlProcesses(_PROCESSES)
        self._threads = ThreadPoolExecutor(_PROCESSES, "pages")
        self._has_warned = False

    def read(self, html: str | bytes, content_type: str = "", deadline_seconds: float | None = None) -> Page:
        """Return the text of a page. This call blocks until a process answers, at most 2 s, which is the default."""
        degraded = []
        if isinstance(html, bytes):
            html, is_replaced = decode_page(html, content_type)
            degraded += [CHARSET_REPLACED] * is_replaced
        found = self._extracted(html, deadline_seconds)
        if found is None:
            degraded.append(EXTRACTION_FALLBACK)
            found = PageText("", (strip_tags(html),))
        if CHARSET_REPLACED not in degraded and any(REPLACEMENT in part for part in found.parts):
            degraded.append(CHARSET_REPLACED)  # before it came here
        everything = "\n".join([*found.parts, *(part for part, _ in found.shown)])
        if without_fillers(everything) != everything:
            seen = [(without_fillers(part), is_main) for part, is_main in found.shown]
            found = found._replace(parts=tuple(map(without_fillers, found.parts)), shown=tuple(seen))
        text = "\n".join(found.parts).encode("utf-8", "replace")
        degraded += [TRUNCATED] * (len(text) > self._text_max_bytes)
        seen = [*[(found.title, False)] * bool(found.title), *found.shown]
        parts = pack_parts(seen, self._key) if self._key and not degraded else b""
        degraded += [MAIN_CONTENT_SMALL] * found.is_main_small
        shown = text[: self._text_max_bytes].decode("utf-8", "ignore")
        degraded += [SHELL] * (len(shown) <= _SHELL_MAX_CHARACTERS and _SHELL.search(shown) is not None)
        surroundings = self._surroundings(found, seen)
        return Page(found.title, shown, tuple(degraded), parts, found.declared, surroundings)

    def _surroundings(self, found: PageText, seen: Sequence[tuple[str, bool]]) -> str:
        words = [part for part, _ in seen if not part.startswith(ADDRESS)]
        if self._key is None or (not found.hidden and _letters(words) in ("", _letters(found.parts))):
            return ""
        return self._key.digest("\n".join([found.hidden, *map(masked, words)]).encode("utf-8", "replace")).hex()

    def with_page(self, unsigned: Unsigned, deadline_seconds: float | None = None) -> ReadDocument:
        """Return a document with its text and what else was read of it.

        Only a page has more than a text.
        """
        document = unsigned.document
        if document.text is not None:
            return unsigned, PageFacts()
        page = self.read(_content(document), document.content_type or "", deadline_seconds)
        labels = {name: value for name, value in document.labels.items() if name != SURROUNDINGS_LABEL}
        has_room = len(labels) < LABELS_MAX
        if page.surroundings and has_room:
            labels = {SURROUNDINGS_LABEL: page.surroundings, **labels}
        complete = msgspec.structs.replace(
            document, text=page.text, html=None, raw=None, content_type=None, labels=labels
        )
        unread = (CONTENT_UNREAD,) if page.surroundings and not has_room else ()
        degraded = tuple(sorted({*unsigned.degraded, *page.degraded, *unread}))
        parts, payload = b"" if unsigned.degraded else page.parts, payload_of(document.raw) if document.raw else ""
        facts = PageFacts(parts, _declared(page.declared, document.url), payload)
        return unsigned._replace(document=complete, degraded=degraded), facts

    async def with_texts(self, batch: Sequence[Unsigned], until: float) -> list[ReadDocument]:
        """Return documents with their texts and parts, in order, while the event loop runs on.

        From `until` of `time.monotonic()` on, pages get 0.25 s instead of 2 s, so that a batch of pages that hang ends
        before Kafka gives its partitions to another worker.
        """
        if all(unsigned.document.text is not None for unsigned in batch):
            return [(unsigned, PageFacts()) for unsigned in batch]
        loop = asyncio.get_running_loop()
        tasks = [loop.run_in_executor(self._threads, self._with_page_until, unsigned, until) for unsigned in batch]
        return list(await asyncio.gather(*tasks))

    def close(self) -> None:
        """End the threads and the processes."""
        self._threads.shutdown(cancel_futures=True)
        self._processes.close()

    def _with_page_until(self, unsigned: Unsigned, until: float) -> ReadDocument:
        return self.with_page(unsigned, None if time.monotonic() < until else _IMPATIENT_SECONDS)

    def _extracted(self, html: str, deadline_seconds: float | None) -> PageText | None:
        if not self._processes.is_available():
            if not self._has_warned:
                self._has_warned = True
                log.warning("HTML is only stripped of its tags: install nearstream[html] to read the text of pages")
            return None
        parsable = for_parser(html)
        if parsable is None:
            return None
        return self._processes.page(
            parsable, main_content=self._main_content, links=self._links, deadline_seconds=deadline_seconds
        )


def patience() -> float:
    """Return the time of `time.monotonic()` until which each page gets 2 s.

    It is for a batch that begins now.
    """
    return time.monotonic() + _PATIENCE_SECONDS


def payload_of(content: bytes) -> str:
    """Return the digest of a payload as in WARC and CDX files: SHA-1 in base32."""
    return b32encode(sha1(content, usedforsecurity=False).digest()).decode()


def _letters(words: Iterable[str]) -> str:
    return "".join("".join(words).casefold().split())


def _declared(target: str, url: str | None) -> str:
    """Return the name of the page that a page declares as its canonical one, if it is one of its site."""
    name = declared_name(target, url) if target and url else ""
    return name if name and site_of(name) == site_of(url or "") else ""


def _content(document: Document) -> str | bytes:
    content = document.html if document.html is not None else document.raw
    if content is None:
        raise ValueError("text, html, raw: one of them expected in a complete document")
    return content
