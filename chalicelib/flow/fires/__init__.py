"""Emit: write the fires of timers ahead of their instants, and hint them."""
