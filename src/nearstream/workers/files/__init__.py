"""Read files, folders and standard input: what a file holds, and its documents."""
