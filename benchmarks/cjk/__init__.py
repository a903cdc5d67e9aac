"""Accuracy and recall for texts without spaces between words."""
