"""Keep the documents of which enough is new, and drop the others."""
