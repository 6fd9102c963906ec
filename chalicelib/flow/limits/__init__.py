"""Pools, policies, holders of slots, and counts of active runs in limits that a definition names after their start."""
