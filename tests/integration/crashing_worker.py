"""A real worker that dies once: `python crashing_worker.py {send|ack} BATCH`, before that step of that batch."""

import os
import sys
from collections.abc import Sequence

from schemas.record import Outgoing
from workers import delivery
from workers.cli import main

step, batch = sys.argv[1], int(sys.argv[2])
sent = 0
send_all = delivery.Delivery._send_all


async def crash_around_send(self: delivery.Delivery, outgoing: Sequence[Outgoing]) -> None:
    global sent
    if outgoing and outgoing[0].topic.endswith("signatures.v1"):
        return await send_all(self, outgoing)
    sent += 1
    if sent == batch and step == "send":
        os._exit(9)
    await send_all(self, outgoing)
    if sent == batch and step == "ack":
        os._exit(9)
    return None


delivery.Delivery._send_all = crash_around_send  # type: ignore[method-assign]
sys.exit(main(["worker", "all"]))
