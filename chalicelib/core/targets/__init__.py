"""Targets: their documents, the answers of their calls, retries, delivery policies and logs."""
