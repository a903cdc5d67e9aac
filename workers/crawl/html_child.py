"""The child process that turns HTML into text, one document at a time.

It is started as a script, so it imports nothing of nearstream. A message in either direction is a length in 4 bytes
(big-endian) and that many bytes of UTF-8. The first message of the child is empty and says that it is ready.
"""

import re
import resource
import signal
import socket
import sys

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

_MEMORY_BYTES = 1 << 30
_STYLE_MAX_CHARACTERS = 4_096
_HIDING = re.compile(r"(?:\A|;)\s{0,16}(?:display\s{0,16}:\s{0,16}none|font-size\s{0,16}:\s{0,16}0{1,8}(?![.\d]))")


def text_of(html: str) -> str:
    """Return all visible text of HTML on one line.

    Text of elements that are hidden by an attribute or an inline style is left out.
    """
    tree = HTMLTree.parse(html)
    if tree.body is None:
        return ""
    for element in list(tree.body.query_selector_all("[style], [hidden]")):
        style = element.getattr("style") or ""
        if element.hasattr("hidden") or _HIDING.search(style[:_STYLE_MAX_CHARACTERS].lower()):
            element.decompose()
    return extract_plain_text(tree, preserve_formatting=False, list_bullets=False, alt_texts=False)


def main(deadline_seconds: int) -> None:
    """Answer messages on standard input, which is a socket, until its other end is closed.

    Args:
        deadline_seconds: After this time the kernel ends the process, also if its parent is gone or the parser holds
            the interpreter's lock.
    """
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    connection = socket.socket(fileno=0)
    connection.sendall(bytes(4))
    stream = connection.makefile("rb")
    while len(size := stream.read(4)) == 4:
        html = stream.read(int.from_bytes(size, "big")).decode("utf-8", "replace")
        signal.alarm(deadline_seconds)
        text = text_of(html).encode("utf-8", "replace")
        signal.alarm(0)
        connection.sendall(len(text).to_bytes(4, "big") + text)


if __name__ == "__main__":
    main(int(sys.argv[1]))
