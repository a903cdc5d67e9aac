"""Signals of the components for Scrapy."""

# Sent with `request`, `because` and `canonical`, which are those of the decision, and `spider`.
page_skipped = object()
# Sent with `item`, `verdict` (a dict with the fields of an answer of `/v1/check`) and `spider`.
verdict_received = object()
