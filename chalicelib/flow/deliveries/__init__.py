"""Prepare, lease, send and record deliveries to targets that have no lifecycle, alone and under policies."""
