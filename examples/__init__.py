"""Examples that run on the local cloud, each ending in a readable result."""
