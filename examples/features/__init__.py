"""A nightly feature build, and a backfill of the month before it was deployed."""
