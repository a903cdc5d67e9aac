"""Where tests find the states of pages in dictionaries."""

from nearstream.streams.deciding.memory import MemoryDecisions as MemoryDecisions
