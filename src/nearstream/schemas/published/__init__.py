"""What is published of the messages: schemas and descriptions for programs in other languages."""
