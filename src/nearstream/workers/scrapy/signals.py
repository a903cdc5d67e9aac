"""Signals of the components for Scrapy."""

# Sent with `request`, `because` and `canonical`, which are those of the decision, and `spider`.
page_skipped = object()
