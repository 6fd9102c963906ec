"""Days that are complete when all their hours are there, from three airports: 23, 24 or 25 hours each."""
