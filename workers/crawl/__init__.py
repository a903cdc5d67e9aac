"""Read web pages. Their HTML becomes text in processes that can be killed, because some pages make parsers hang."""
