"""Play adversarial schedules against the protocol of matching: `python -m tests.simulation --schedules 100000`."""

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace

from tests.simulation.adversary import Plan, Schedule
from tests.simulation.laws import broken_laws


def play(seed: int, plan: Plan) -> tuple[set[str], Counter[str]]:
    """Play one schedule, and return the laws that it breaks and what happened."""
    schedule = Schedule(seed, plan)
    stuck = schedule.run()
    return set(stuck) or broken_laws(schedule), schedule.counts


def main() -> int:
    """Play schedules and print what is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    for number in ("tails", "flushes", "kills", "slots", "documents"):
        parser.add_argument(f"--{number}", type=int, default=0)
    for flag in ("confirms", "wipes", "chain", "storm", "impatient", "resigns"):
        parser.add_argument(f"--{flag}", action="store_true")
    options = vars(parser.parse_args())
    schedules, first = options.pop("schedules"), options.pop("seed")
    plan = replace(Plan(), **options)
    began, broken, laws, counts = time.perf_counter(), 0, Counter[str](), Counter[str]()
    for seed in range(first, first + schedules):
        found, happened = play(seed, plan)
        counts += happened
        laws.update(found)
        if found:
            broken += 1
            if broken <= 10:
                print(seed, ", ".join(sorted(found)))  # noqa: T201 - a command
    print(f"{schedules} schedules, {broken} broken {dict(laws)}, {dict(counts)}, {time.perf_counter() - began:.0f} s")  # noqa: T201
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
