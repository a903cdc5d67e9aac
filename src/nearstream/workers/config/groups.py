"""The consumer group of each role."""

from dataclasses import replace

from nearstream.workers.config.settings import Settings


def own_group(settings: Settings, role: str) -> Settings:
    """Return the settings with the consumer group of a role.

    Both `decide` and `alert` read all verdicts, so they cannot share a group.
    """
    return replace(settings, group=f"{settings.group}.alert") if role == "alert" else settings
