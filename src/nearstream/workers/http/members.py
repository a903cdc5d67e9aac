"""Answer who belongs to the family of a document, and whether the index has a document."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TypeVar

from nearstream.schemas.checks.members import FamilyLabel, FamilyMember, FamilyMembers
from nearstream.schemas.documents.document import document_key, from_milliseconds
from nearstream.streams.store.limits import IndexLostError, IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.http.rare_log import RareLog
from nearstream.workers.redis.index.documents import current_state
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.kept.label_guards import LabelGuards
from nearstream.workers.redis.reading.labelled import labels_of
from nearstream.workers.redis.reading.members import addresses, members, spellings, stored_family

_LOOK_SECONDS = 2.0

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


class NotLookedUpError(Exception):
    """Redis gave no answer."""


@dataclass(frozen=True)
class MemberReader:
    """Reads who belongs to a family.

    Attributes:
        index: The index.
        guards: Labels that are suspended.
        rare_log: Logs why Redis refuses to be read.
    """

    index: RedisIndex
    guards: LabelGuards
    rare_log: RareLog = field(default_factory=lambda: RareLog(log))

    async def members(self, collection: str, name: str, after: int, limit: int) -> FamilyMembers | None:
        """Return members of the family of a document, None without the document.

        Args:
            collection: The collection of the document.
            name: Its id.
            after: Ordinal of the member behind which they are.
            limit: Most ordinals that are read.

        Raises:
            NotLookedUpError: Redis does not answer, or refuses to.
        """
        return await self._within_time(self._members(collection, name, after, limit))

    async def known(self, collection: str, name: str) -> list[str]:
        """Return the spellings of an id that the index has.

        Raises:
            NotLookedUpError: Redis does not answer, or refuses to.
        """
        return await self._within_time(self._known(collection, name))

    async def _members(self, collection: str, name: str, after: int, limit: int) -> FamilyMembers | None:
        family = await stored_family(self.index, document_key(collection, name))
        if family is None:
            return None
        page = await members(self.index, family, after, limit)
        senders, recipients = await addresses(self.index, family)
        labels = await labels_of(self.index, family)
        guard = await self.guards.read(collection, family.family_id) if labels else None
        return FamilyMembers(
            family=family.family_id,
            size=family.size,
            first_seen=from_milliseconds(family.first_seen_ms),
            members=tuple(
                FamilyMember(id=each.id, version=each.version, observed_at=from_milliseconds(each.observed_at_ms))
                for each in page.members
            ),
            next=page.next,
            labels=tuple(
                FamilyLabel(id=name, label=kind, weight=given.weight, since=from_milliseconds(given.given_ms))
                for name, given in labels
                if (kind := given.label) is not None
            ),
            label_state=guard.state if guard else "",
            senders=tuple(senders),
            recipients=tuple(recipients),
        )

    async def _known(self, collection: str, name: str) -> list[str]:
        return [each for each in spellings(name) if await current_state(self.index, document_key(collection, each))]

    async def _within_time(self, answering: Coroutine[None, None, Answer]) -> Answer:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return await answering
        except (IndexUnavailableError, IndexLostError, TimeoutError) as error:
            raise NotLookedUpError from error
        except SettingsError as error:
            self.rare_log.warning(f"the index refuses to be read: {error}")
            raise NotLookedUpError from error
