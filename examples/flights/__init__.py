"""Real flights: partitions land, runs follow, one starts the next, and a clock starts another."""
