"""Components for Scrapy, which send the pages of a spider and ignore requests that decisions make needless."""
