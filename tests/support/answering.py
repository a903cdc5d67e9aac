"""An HTTP server on loopback whose answers are those of a function."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Answer = Callable[[BaseHTTPRequestHandler, bytes], tuple[int, bytes]]


@contextmanager
def answering(answer: Answer, content_type: str = "text/html") -> Iterator[int]:
    """Serve for the block, and yield the port.

    Args:
        answer: Returns status and body of the answer to a request, which has been read, and to its body.
        content_type: That of every answer.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(self, self.rfile.read(int(self.headers["Content-Length"] or 0)))
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name that the server looks for

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
