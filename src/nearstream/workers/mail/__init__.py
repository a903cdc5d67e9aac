"""Mail: the bytes of a message to a document, the filter, and the server of LMTP.

No message can break the bounds within which it is read.
"""
