"""The ways in which users write instants: cron and other expressions, wall time, daily windows and exclusions."""
