"""Notices of failures and missed deadlines: who is told, how often, and when a deadline counts."""
