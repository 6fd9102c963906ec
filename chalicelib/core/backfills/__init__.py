"""Backfills: the plan of past fires or partitions, and how it advances."""
