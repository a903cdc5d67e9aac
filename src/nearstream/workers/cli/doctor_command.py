"""Check the deployment that a worker needs."""

import argparse
import asyncio

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.doctor import examine
from nearstream.workers.operations.doctor_checks import Grade
from nearstream.workers.operations.terminal import print_json, print_line
from nearstream.workers.pipeline.deployment import Deployment


def check_deployment(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print each check of Kafka, Redis, topics and scheme, with a remedy where one is needed."""

    async def run() -> bool:
        passed = True
        async for check in examine(Deployment.of(settings), options.timeout):
            if options.json:
                print_json(check, flush=True)
            else:
                print_line(f"{check.grade:<5} {check.subject:<9} {check.detail}", flush=True)
            passed &= check.grade is not Grade.FAIL
        return passed

    return Exit.OK if asyncio.run(run()) else Exit.NO
