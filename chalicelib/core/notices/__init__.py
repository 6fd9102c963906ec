"""Notices of failures and missed deadlines: the targets, the grouping, and when a deadline counts as missed."""
