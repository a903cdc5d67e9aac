"""A document that a frozen worker sends after its removal."""

import json
import os
import signal
from pathlib import Path

import pytest

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.schemas.verdicts.events import Retraction
from tests.support.deployment import TEXTS, LocalDeployment, deployed, until

KEY = b"default/x"


def is_stopped(pid: int) -> bool:
    """Return whether a process was stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


async def _signed(deployment: LocalDeployment) -> list[bool]:
    """Return whether each record about the document holds a signature, in order."""
    return [record.value is not None for record in await deployment.read(SIGNATURES.name) if record.key == KEY]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the state of a process is read from /proc")
async def test_f40_a_signer_that_wakes_after_the_removal_brings_nothing_back(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    """A frozen signer loses its partitions, and its document is removed.

    Then it wakes and sends its signature.
    """
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        removal = ProducerRecord(deployment.topic(DOCUMENTS), b"x", None, [])
        program = ("tests.fault.entry", f"freeze:{KEY.decode()}")
        with deployment.worker("match"), deployment.worker("sign", program) as frozen:
            await deployment.send([deployment.document("x", TEXTS[0])])

            async def stopped() -> bool:
                return is_stopped(frozen.pid)

            await until(stopped)
            try:
                with deployment.worker("sign"):
                    await deployment.drained()
                    await deployment.send([removal])
                    await deployment.drained()
                    assert await _signed(deployment) == [True, False]
                    os.kill(frozen.pid, signal.SIGCONT)

                    async def removed_again() -> bool:
                        signed = await _signed(deployment)  # the removal may be sent more than once
                        return signed[:3] == [True, False, True] and not any(signed[3:]) and len(signed) > 3

                    await until(removed_again)
                    await deployment.send([deployment.document("y", TEXTS[0])])
                    await deployment.drained()
            finally:
                os.kill(frozen.pid, signal.SIGCONT)
        assert json.loads(deployment.run("show", "x", "--json").stdout)["status"] == "removed"
        events = await deployment.events()
        assert {event.document_id for event in events if isinstance(event, Retraction)} == {"x"}
        assert [event for event in events if not isinstance(event, Retraction)] == []
