"""Pools, policies, holders of slots, and runs that are counted in limits which were named after their start."""
