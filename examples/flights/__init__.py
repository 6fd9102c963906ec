"""Real flights: partitions arrive and start runs, a run starts the next one, and a timer starts another."""
