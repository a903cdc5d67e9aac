"""The charsets that a web page declares, and its text."""

import re

from w3lib.encoding import html_body_declared_encoding

from nearstream.streams.ingest.charset import Decoded, charset_named, decode

CONTENT_TYPE_MAX_CHARACTERS = 256
_LABEL = re.compile(r"""charset\s{0,8}=\s{0,8}["']?\s{0,8}([^\s"';,]{1,64})""", re.IGNORECASE)


def decode_page(data: bytes, content_type: str) -> Decoded:
    """Decode the bytes of a web page.

    Its charset is declared by its content type, or else by an element `meta`, see `decode`.

    Args:
        data: The page.
        content_type: As the server sent it, with or without a charset.
    """
    of_header = _LABEL.search(content_type[:CONTENT_TYPE_MAX_CHARACTERS])
    labels = [of_header[1] if of_header else "", html_body_declared_encoding(data) or ""]
    # UTF-7 hides markup, and no browser reads it.
    return decode(data, [label for label in labels if charset_named(label) != "utf-7"])
