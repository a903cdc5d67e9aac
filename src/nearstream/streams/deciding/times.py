"""How long decisions last."""

from datetime import datetime, timedelta

from nearstream.schemas.documents.document import LATEST

SHORTEST_SECONDS = 3_600  # after a change, and of the first skip
LONGEST_SECONDS = 30 * 86_400
SKIP_SECONDS = 7 * 86_400  # at most
RETRY_SECONDS = 600  # of a page that is suspected to be an error page, then twice as long each time


def later(time: datetime, seconds: int) -> datetime:
    """Return a time that is later by these seconds, at most the last one."""
    return time + min(timedelta(seconds=seconds), LATEST - time)
