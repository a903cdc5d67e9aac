"""Speed of the whole stream, compared with one that is written by hand."""
