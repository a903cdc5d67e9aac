"""Answer whether a crawler need not fetch a page, within a deadline."""

import asyncio
import time
from dataclasses import dataclass

from nearstream.schemas.checks.check import SkipAnswer, SkipReason
from nearstream.schemas.labels.decision import Decision
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.kept.decisions import DecisionStore


@dataclass(frozen=True)
class SkipChecker:
    """Answers from the newest decisions in Redis.

    Attributes:
        store: The decisions.
        seconds: How long an answer may take.
    """

    store: DecisionStore
    seconds: float

    async def check(self, url: str, collection: str) -> SkipAnswer:
        """Return whether a page need not be fetched now.

        In doubt it is to be fetched: without a decision, and if Redis does not answer in time.

        Args:
            url: The page, of which tracking parameters and the like are ignored.
            collection: The tenant.
        """
        lineage = name_of_page(url)
        try:
            async with asyncio.timeout(self.seconds):
                state = await self.store.read_state(collection, lineage)
        except TimeoutError:
            return _degraded(lineage, "deadline")
        except IndexUnavailableError:
            return _degraded(lineage, "index_unavailable")
        except SettingsError:
            return _degraded(lineage, "index_refused")
        return SkipAnswer(skip=False, lineage=lineage) if state is None else _answer(lineage, state.decision)


def _answer(lineage: str, decision: Decision) -> SkipAnswer:
    return SkipAnswer(
        skip=may_skip(decision, time.time_ns() // 1_000_000),
        lineage=lineage,
        action=decision.action,
        because=decision.because,
        until=decision.until,
        canonical=decision.canonical.url or decision.canonical.id,
    )


def _degraded(lineage: str, reason: SkipReason) -> SkipAnswer:
    return SkipAnswer(skip=False, lineage=lineage, degraded=True, reason=reason)
