"""Notices and deadlines: record what happened, tell it in groups, judge deadlines."""
