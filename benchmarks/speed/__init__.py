"""Speed of signing and of estimates, compared with other libraries."""
