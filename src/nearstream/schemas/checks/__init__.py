"""Requests and answers of the HTTP API."""
