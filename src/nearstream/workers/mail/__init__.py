"""Reading mail: the bytes of a message to a document, within bounds that no message can break."""
