"""Alerts, and what silences them."""
