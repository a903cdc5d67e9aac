"""Send pages from Scrapy, and skip pages that need not be fetched."""
