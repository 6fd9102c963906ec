"""Runs: launch, follow, complete; pull workers, dead letters, costs, metrics."""
