"""Pools, policies, the holders of slots, and runs that count in a limit that was named later."""
