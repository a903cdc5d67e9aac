"""Settings and log of nearstream inside Scrapy."""

import logging
import os

from scrapy.crawler import Crawler

from nearstream.workers.config.settings import PREFIX, Settings, load

WAIT_SECONDS = 30.0  # for a broker, when a spider is opened


def settings_of(crawler: Crawler) -> Settings:
    """Return the settings: those of the spider whose names begin with `NEARSTREAM_`, else the environment variables.

    Raises:
        SettingsError: One of them is invalid. The message names it.
    """
    given = {name: str(crawler.settings.get(name)) for name in crawler.settings if name.startswith(PREFIX)}
    return load(os.environ | given)


def keep_pages_out_of_log() -> None:
    """Let aiokafka log from INFO on, unless its level is set.

    Scrapy logs from DEBUG on, where aiokafka prints each record that it sends, with the page in it.
    """
    if logging.getLogger("aiokafka").level == logging.NOTSET:
        logging.getLogger("aiokafka").setLevel(logging.INFO)
