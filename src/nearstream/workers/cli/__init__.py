"""The command line: arguments in, text or JSON on stdout, messages on stderr, an exit code."""
