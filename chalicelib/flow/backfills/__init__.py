"""Begin a backfill, hand out its jobs, show how far it is."""
