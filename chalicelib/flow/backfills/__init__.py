"""Begin a backfill, create its jobs, show its progress."""
