"""Notices and deadlines: record failures, aborts and missed deadlines, and send notices about them in groups."""
