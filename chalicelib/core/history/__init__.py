"""Lines of history: what of a final run or record goes into the lake."""
