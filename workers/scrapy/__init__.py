"""Components for Scrapy: send the pages of a spider, and skip the pages that decisions say to skip."""
