"""Turn the pages of a WARC file into documents with their headers."""

from collections import Counter
from collections.abc import Iterator

from nearstream.schemas.documents.record import PAGE_PAYLOAD_HEADER, Headers
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.workers.crawl.warc import Broken, Redirect, Redirects, WarcPage, read_warc
from nearstream.workers.files.content import UnreadableFileError

# The byte of the unpacked file at which the record of a page begins, the page, and the fields of its document.
WarcDocument = tuple[int, bytes, Headers]


def read_documents(content: Iterator[bytes], passed_over: Counter[str]) -> Iterator[WarcDocument | Broken]:
    """Yield the pages of a WARC file that is unpacked, and count its other records.

    A page to which URLs earlier in the file redirect for good is yielded once for each of them, as a crawler sends it
    that asks for these URLs. If the file breaks off, all records before that place are yielded.
    """
    redirects, failures = Redirects(), list[UnreadableFileError | OSError]()
    for found in read_warc(_until_failure(content, failures)):
        if isinstance(found, WarcPage):
            aliases = redirects.take(found.url)
            yield from (_document(found, asked) for asked in aliases or [found.url])
        elif isinstance(found, Broken):
            yield found
        else:
            passed_over["redirect" if isinstance(found, Redirect) else found] += 1
            if isinstance(found, Redirect):
                redirects.add(found.url, found.location)
    if failures:
        raise failures[0]


def _until_failure(content: Iterator[bytes], failures: list[UnreadableFileError | OSError]) -> Iterator[bytes]:
    """Yield a content as far as it can be read, because what was read may hold whole records."""
    try:
        yield from content
    except (UnreadableFileError, OSError) as failure:
        failures.append(failure)


def _document(page: WarcPage, asked: str) -> WarcDocument:
    """Return the document of a page under the URL that redirects to it, or its own."""
    fields = {"url": asked, "observed-at": page.observed_at.isoformat(), "source": "crawler"}
    if asked != page.url:
        fields |= {"id": name_of_page(page.url), "lineage": name_of_page(page.url)}
    headers: Headers = [("content-type", page.content_type.encode("latin-1", "replace"))]
    headers += [("nearstream-degraded", b"truncated")] * page.is_cut_off
    headers += [(PAGE_PAYLOAD_HEADER, page.payload.encode("ascii", "replace"))] * bool(page.payload)
    headers += [(f"nearstream-{name}", value.encode("utf-8", "replace")) for name, value in fields.items()]
    return page.offset, page.content, headers
