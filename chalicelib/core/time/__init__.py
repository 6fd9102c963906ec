"""Instants as users write them: cron, other expressions, wall time and daylight saving, windows, exclusions."""
