"""What people say of documents, and what a crawler is told to do."""
