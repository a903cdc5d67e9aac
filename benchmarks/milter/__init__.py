"""How much later a mail is accepted because of the mail filter."""
