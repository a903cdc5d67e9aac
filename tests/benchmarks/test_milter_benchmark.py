"""The benchmark of the mail filter times two servers with the same mails."""

import asyncio
import random

from benchmarks.milter.__main__ import mail, timed
from tests.support.mail import sink


async def test_both_servers_get_each_mail_and_are_compared_by_their_medians() -> None:
    async with sink() as one, sink() as other:
        found = await asyncio.to_thread(timed, 4, (one.address, other.address))
    assert one.mails.keys() == other.mails.keys()
    assert len(one.mails) == found["mails"] == 4
    assert isinstance(found["median added"], float)


def test_a_mail_has_passed_relays() -> None:
    assert mail("anna", random.Random(1)).count(b"\r\nReceived: ") == 19
