"""Export final rows to the lake, and read the daily reports."""
