"""Quotas of a namespace, so that no team slows down another (O9)."""
