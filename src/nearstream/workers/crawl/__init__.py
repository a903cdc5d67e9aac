"""Read the text of web pages, and the pages of WARC files.

HTML is parsed in child processes that can be killed, because some pages make every parser hang.
"""
