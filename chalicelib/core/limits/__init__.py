"""Limits: slots, rate windows and paces, the permits that a job acquires of each, pools and policies."""
