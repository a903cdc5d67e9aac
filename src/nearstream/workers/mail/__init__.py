"""Mail: the bytes of a message to a document, and the filter.

No message can break the bounds within which it is read.
"""
