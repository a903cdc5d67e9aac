"""Settings and log of nearstream inside Scrapy."""

import logging
import os

from scrapy.crawler import Crawler

from nearstream.workers.config.settings import PREFIX, Settings, SettingsError, load
from nearstream.workers.http.client import ask_seconds

SECONDS_SETTING, COLLECTION_SETTING = "CRAWL_ASK_SECONDS", "CRAWL_COLLECTION"
FETCH = "nearstream_fetch"  # in the meta of a request whose page is always fetched
# In the meta of a request: the name of its page, empty if there is no decision. Missing: nothing answered.
KNOWN_AS = "nearstream_known_as"
CONDITIONAL = "nearstream_conditional"  # in the meta: the headers that we have added
WAIT_SECONDS = 30.0  # for a broker, when a spider is opened


def settings_of(crawler: Crawler) -> Settings:
    """Return the settings: those of the spider whose names begin with `NEARSTREAM_`, else the environment variables."""
    given = {name: str(crawler.settings.get(name)) for name in crawler.settings if name.startswith(PREFIX)}
    return load(os.environ | given)


def seconds_to_ask(settings: Settings, crawler: Crawler) -> float:
    """Return how long an answer of the API is waited for."""
    seconds = crawler.settings.getfloat(SECONDS_SETTING, ask_seconds(settings))
    if not seconds > 0:
        raise SettingsError(f"{SECONDS_SETTING}: expected seconds above 0, got {seconds:g}")
    return seconds


def count(crawler: Crawler, outcome: str) -> None:
    """Count an outcome in the statistics of a spider."""
    if crawler.stats is not None:
        crawler.stats.inc_value(f"nearstream/{outcome}")


def keep_client_out_of_log() -> None:
    """Let aiokafka log nothing, unless its level is set.

    Scrapy logs from DEBUG on, where aiokafka prints each record that it sends, with the page in it. While no broker
    answers, it logs forty errors a second. What matters of them is in our own lines.
    """
    client = logging.getLogger("aiokafka")
    if client.level == logging.NOTSET:
        client.setLevel(logging.CRITICAL + 1)
