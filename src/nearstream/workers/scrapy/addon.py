"""The add-on: one line in the settings of a project in place of several."""

from scrapy.settings import BaseSettings

from nearstream.workers.scrapy.pipeline import NearstreamPipeline
from nearstream.workers.scrapy.skipping import NearstreamDownloaderMiddleware

PAGE_MAX_BYTES = 4 * 1024 * 1024


class NearstreamAddon:
    """Sends pages, and skips those that need not be fetched."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the pipeline and the middleware, and let no page be downloaded that is too large to be sent."""
        settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", NearstreamPipeline, 300)
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", NearstreamDownloaderMiddleware, 543)
        settings.set("DOWNLOAD_MAXSIZE", PAGE_MAX_BYTES, "addon")
