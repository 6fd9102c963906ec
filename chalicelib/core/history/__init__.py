"""The rows of the history lake: the fields of final runs and records."""
