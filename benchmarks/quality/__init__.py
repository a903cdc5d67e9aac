"""Accuracy of relations, distances and positions on labelled documents."""
